// Decides whether a deletion is allowed (K4, K5). Every delete asks here, with the live object's owner and uid, and
// the authority on which it is to be deleted.
//
// - An order deletes at once. If the control plane does not know an object, that is only a suspicion.
// - A suspicion allows a deletion once several resync passes in a row confirmed it, each with at least half of the
//   objects present, once the object is old enough, and within a budget. A control plane that lost its data, or that
//   answers for another region, fails these checks.
// - Otherwise the deletion is held back, visibly, until desired state returns or a person allows it.

import type { Clock } from "../concurrency/clock.ts";
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

/** Why a deletion is allowed, in words for people. */
export interface DeletionBasis {
  readonly authority: "explicit delete" | "confirmed absence" | "operator release" | "unused";
  readonly reason: string;
}

export type Permission =
  | { readonly kind: "permitted"; readonly uid: string; readonly basis: DeletionBasis }
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
  /** The absence in this pass is one of an older incarnation of the control plane. */
  isOfOldIncarnation: boolean;
  /** A new incarnation of the control plane has not confirmed it yet. */
  startedOver: boolean;
  released: boolean;
  /** Already counted against the budget. */
  charged: boolean;
  reason: string;
}

const startedOverReason = "a new incarnation of the control plane has not confirmed its absence yet";

const bases = {
  order: { authority: "explicit delete", reason: "its deletion was ordered" },
  unused: { authority: "unused", reason: "nothing in the cluster or in the desired state refers to it" },
  release: { authority: "operator release", reason: "an operator allowed the held-back deletion" },
} as const satisfies Record<string, DeletionBasis>;

export class DeletionGuard {
  private readonly options: DeletionGuardOptions;
  private readonly clock: Clock;
  private readonly suspicions = new Map<string, Suspicion>();
  private deletedAtMs: number[] = [];
  private managed = 0;
  /** Nothing is deleted because of absence before this time. */
  private budgetFromMs = 0;

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
      isOfOldIncarnation: false,
      startedOver: false,
      released: false,
      charged: false,
      reason: "not confirmed yet",
    };
    known.passes += 1;
    known.inThisPass = true;
    known.isOfOldIncarnation = false;
    this.suspicions.set(key, known);
  }

  /** The key is wanted again, or deleted. */
  clear(key: string): void {
    this.suspicions.delete(key);
  }

  /**
   * The control plane started a new incarnation: absences are counted from the start, because the new history may know
   * these objects. A deletion that is held back stays held back, also if it was allowed under the old one.
   */
  startOver(): void {
    for (const [key, suspicion] of this.suspicions) {
      if (!this.isSuspected(key)) {
        this.suspicions.delete(key);
        continue;
      }
      suspicion.confirmations = 0;
      suspicion.isOfOldIncarnation = suspicion.inThisPass;
      suspicion.startedOver = true;
      suspicion.released = false;
      suspicion.reason = startedOverReason;
    }
  }

  /** Ends a pass; returns the keys to reconcile because of it. */
  endPass({ managed, present }: PassResult): readonly string[] {
    this.managed = managed;
    const isTrustworthy = present * 2 >= managed;
    for (const suspicion of this.suspicions.values()) {
      const counts = suspicion.inThisPass && isTrustworthy && !suspicion.isOfOldIncarnation;
      suspicion.confirmations = counts ? suspicion.confirmations + 1 : 0;
      if (suspicion.confirmations >= this.options.confirmations) suspicion.startedOver = false;
      if (!suspicion.inThisPass) suspicion.passes = 0;
      else if (!isTrustworthy)
        suspicion.reason = `only ${present} of ${managed} objects are known to the control plane`;
      suspicion.inThisPass = false;
      suspicion.isOfOldIncarnation = false;
    }
    return [...this.suspicions.keys()];
  }

  /** Another process has deleted objects until now. How much of the budget it used is unknown, so it counts as used up. */
  takeOver(): void {
    this.budgetFromMs = this.clock.nowMs() + this.options.budgetWindowMs;
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
    if (authority !== "absence") return { kind: "permitted", uid, basis: bases[authority] };
    const suspicion = this.suspicions.get(proof.key);
    if (suspicion === undefined) return { kind: "blocked", reason: "the control plane still knows it" };
    if (suspicion.released) return { kind: "permitted", uid, basis: bases.release };
    const objection = isSealed ? this.objection(suspicion, proof.createdAt) : ownership.reason;
    if (objection !== undefined) {
      suspicion.reason = objection;
      return { kind: "blocked", reason: objection };
    }
    if (!suspicion.charged) this.deletedAtMs.push(this.clock.nowMs());
    suspicion.charged = true;
    const reason = `the control plane did not know it in ${suspicion.passes} resync passes in a row`;
    return { kind: "permitted", uid, basis: { authority: "confirmed absence", reason } };
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
    if (suspicion.startedOver) return startedOverReason;
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
    const nowMs = this.clock.nowMs();
    if (nowMs < this.budgetFromMs)
      return `this agent has led for less than ${budgetWindowMs / 60_000} minutes`;
    const sinceMs = nowMs - budgetWindowMs;
    this.deletedAtMs = this.deletedAtMs.filter((atMs) => atMs > sinceMs);
    const budget = Math.max(budgetObjects, Math.floor(this.managed * budgetFraction));
    if (this.deletedAtMs.length < budget) return undefined;
    return `the budget of ${budget} deletions per ${budgetWindowMs / 60_000} minutes is used up`;
  }
}
