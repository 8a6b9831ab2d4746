// Decides whether a deletion is allowed (K4, K5). Every delete asks here, with the live object's owner and uid, and
// the authority on which it is to be deleted.
//
// - An order deletes at once. If the control plane does not know an object, that is only a suspicion.
// - A suspicion allows a deletion once several resync passes in a row confirmed it, each with at least half of the
//   objects present, once the object is old enough, and within a budget. A control plane that lost its data, or that
//   answers for another region, fails these checks.
// - Otherwise the deletion is held back, visibly, until desired state returns or a person allows it.

import type { Clock } from "../concurrency/clock.ts";
import type { ObjectRef, ResourceKind } from "../kube/types.ts";
import type { Ownership } from "../model/ownership.ts";

export interface DeletionGuardOptions {
  /** "explicit" never acts on absence. */
  readonly mode: "confirmed" | "explicit";
  readonly confirmations: number;
  readonly minimumAgeMs: number;
  readonly budgetObjects: number;
  readonly budgetFraction: number;
  readonly budgetWindowMs: number;
}

/**
 * "order": an explicit Delete. "absence": the control plane does not know the object. "unused": a companion object of
 * krane's that nothing in the cluster or in the desired state refers to.
 */
export type Authority = "order" | "absence" | "unused";

export interface DeletionProof {
  readonly key: string;
  readonly ownership: Ownership;
  readonly uid: string;
  readonly createdAt: string | undefined;
  readonly authority: Authority;
}

export type Permission =
  | { readonly kind: "permitted"; readonly uid: string }
  | { readonly kind: "not-ours"; readonly reason: string }
  | { readonly kind: "blocked"; readonly reason: string };

export interface PassResult {
  /** Objects in the cluster that the pass asked for. */
  readonly managed: number;
  /** Of these, the ones that the control plane knows. */
  readonly present: number;
}

export interface SuspectedDeletion {
  readonly key: string;
  readonly id: string;
  readonly reason: string;
  readonly suspectedPasses: number;
  readonly firstSuspectedMs: number;
}

interface Suspicion {
  readonly id: string;
  readonly firstSuspectedMs: number;
  /** Passes in a row in which the control plane did not know it. */
  passes: number;
  /** Of these, the passes in a row in which at least half of all objects were present. */
  confirmations: number;
  inThisPass: boolean;
  released: boolean;
  /** Already counted against the budget. */
  charged: boolean;
  reason: string;
}

export class DeletionGuard {
  private readonly options: DeletionGuardOptions;
  private readonly clock: Clock;
  private readonly suspicions = new Map<string, Suspicion>();
  private deletedAtMs: number[] = [];
  private managed = 0;

  constructor(options: DeletionGuardOptions, clock: Clock) {
    this.options = options;
    this.clock = clock;
  }

  /** The control plane answered that it does not know the object. */
  suspect(key: string, id: string): void {
    const known = this.suspicions.get(key) ?? {
      id,
      firstSuspectedMs: this.clock.wallMs(),
      passes: 0,
      confirmations: 0,
      inThisPass: false,
      released: false,
      charged: false,
      reason: "not confirmed yet",
    };
    known.passes += 1;
    known.inThisPass = true;
    this.suspicions.set(key, known);
  }

  /** The key is wanted again, or deleted. */
  clear(key: string): void {
    this.suspicions.delete(key);
  }

  /** Ends a pass; returns the keys to reconcile because of it. */
  endPass({ managed, present }: PassResult): readonly string[] {
    this.managed = managed;
    const isTrustworthy = present * 2 >= managed;
    for (const suspicion of this.suspicions.values()) {
      const counts = suspicion.inThisPass && isTrustworthy;
      suspicion.confirmations = counts ? suspicion.confirmations + 1 : 0;
      if (!suspicion.inThisPass) suspicion.passes = 0;
      else if (!isTrustworthy)
        suspicion.reason = `only ${present} of ${managed} objects are known to the control plane`;
      suspicion.inThisPass = false;
    }
    return [...this.suspicions.keys()];
  }

  /** Whether the object is a candidate for deletion because of its absence. */
  isSuspected(key: string): boolean {
    const passes = this.suspicions.get(key)?.passes ?? 0;
    return passes >= this.options.confirmations || this.suspicions.get(key)?.released === true;
  }

  /** Absent in enough trustworthy passes that its desired state can be dropped too. */
  isConfirmed(key: string): boolean {
    const confirmations = this.suspicions.get(key)?.confirmations ?? 0;
    return this.options.mode === "confirmed" && confirmations >= this.options.confirmations;
  }

  permit(proof: DeletionProof): Permission {
    const { ownership, uid, authority } = proof;
    const isSealed = ownership.kind === "ours";
    if (!isSealed && (ownership.kind !== "unsealed" || authority === "unused"))
      return { kind: "not-ours", reason: ownership.reason };
    if (uid === "") return { kind: "not-ours", reason: "the uid of the live object is unknown" };
    if (authority !== "absence") return { kind: "permitted", uid };
    const suspicion = this.suspicions.get(proof.key);
    if (suspicion === undefined) return { kind: "blocked", reason: "the control plane still knows it" };
    if (suspicion.released) return { kind: "permitted", uid };
    const reason = isSealed ? this.objection(suspicion, proof.createdAt) : ownership.reason;
    if (reason !== undefined) {
      suspicion.reason = reason;
      return { kind: "blocked", reason };
    }
    if (!suspicion.charged) this.deletedAtMs.push(this.clock.nowMs());
    suspicion.charged = true;
    return { kind: "permitted", uid };
  }

  /** A person allows the deletion. Returns false if it is not held back. */
  release(key: string): boolean {
    const suspicion = this.suspicions.get(key);
    if (suspicion === undefined || !this.isSuspected(key)) return false;
    suspicion.released = true;
    return true;
  }

  blocked(): readonly SuspectedDeletion[] {
    return [...this.suspicions]
      .filter(([key, { released }]) => this.isSuspected(key) && !released)
      .map(([key, { id, reason, passes, firstSuspectedMs }]) => ({
        key,
        id,
        reason,
        suspectedPasses: passes,
        firstSuspectedMs,
      }));
  }

  get blockedCount(): number {
    return this.blocked().length;
  }

  private objection(suspicion: Suspicion, createdAt: string | undefined): string | undefined {
    const { mode, confirmations, minimumAgeMs } = this.options;
    if (mode === "explicit") return 'deletion.mode = "explicit" never deletes because of absence';
    if (suspicion.passes < confirmations)
      return `absent in ${suspicion.passes} of the ${confirmations} resync passes required`;
    if (suspicion.confirmations < confirmations)
      return `too few objects were known to the control plane in the last ${confirmations} resync passes`;
    // biome-ignore lint/style/noRestrictedGlobals: it reads a timestamp that Kubernetes wrote; the time comes from the clock.
    const createdMs = Date.parse(createdAt ?? "");
    // An unreadable timestamp gives NaN, and the object counts as new.
    if (!(this.clock.wallMs() - createdMs >= minimumAgeMs)) return "the object is too young";
    return suspicion.charged ? undefined : this.budgetObjection();
  }

  private budgetObjection(): string | undefined {
    const { budgetObjects, budgetFraction, budgetWindowMs } = this.options;
    const sinceMs = this.clock.nowMs() - budgetWindowMs;
    this.deletedAtMs = this.deletedAtMs.filter((atMs) => atMs > sinceMs);
    const budget = Math.max(budgetObjects, Math.floor(this.managed * budgetFraction));
    if (this.deletedAtMs.length < budget) return undefined;
    return `the budget of ${budget} deletions per ${budgetWindowMs / 60_000} minutes is used up`;
  }
}

export interface EventSubject {
  readonly kind: ResourceKind;
  readonly ref: ObjectRef;
  readonly uid: string;
}

/**
 * The event that shows, in `kubectl describe`, why krane holds back the deletion of an object. Its name is fixed per
 * object and uid, so repeating it does not fill the cluster.
 */
export function deletionBlockedEvent({ kind, ref, uid }: EventSubject, reason: string, wallMs: number) {
  const { name, namespace = "default" } = ref;
  // biome-ignore lint/style/noRestrictedGlobals: it formats the time that the clock gave, and reads none itself.
  const timestamp = new Date(wallMs).toISOString().replace(/\.\d+Z$/, "Z");
  return {
    metadata: { name: `${name}.deletion-blocked-${uid.slice(0, 8)}`, namespace },
    involvedObject: {
      apiVersion: kind.group === "" ? kind.version : `${kind.group}/${kind.version}`,
      kind: kind.kind,
      name,
      namespace,
      uid,
    },
    type: "Warning",
    reason: "DeletionBlocked",
    message: `The control plane does not know this object. krane is holding back its deletion: ${reason}.`,
    source: { component: "krane" },
    reportingComponent: "krane",
    reportingInstance: "krane",
    firstTimestamp: timestamp,
    lastTimestamp: timestamp,
    count: 1,
  };
}
