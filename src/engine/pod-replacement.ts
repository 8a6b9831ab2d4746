// Decides which pods are replaced because they are less isolated than the template that they were made from: a webhook
// changed them when they were created, the template was edited at that moment, or somebody added a container later. It is
// the only reason for which krane ends a pod.
//
// - One pod of a deployment at a time. The next one waits until the deployment is complete again, or for five minutes.
// - Within a budget per controller, so that a mistake in judging pods cannot end all of them. A namespace may use half of it,
//   so that whoever keeps weakening pods of their own does not keep krane from replacing those of others.
// - If a pod that was created since is as weak, replacing more does not help. The deployment is held: it gets no new pods
//   and loses no others. After an hour or with a new version it may have one more, which shows whether that has ended.
// - The owner carries a mark while it is held. A process that has just started, or follows another one that leads, goes on
//   with that hold. Otherwise each restart would let all of its pods start. Somebody who can write the mark can hold
//   their own deployment with it, as they can by other ways.
import type { Clock } from "../concurrency/clock.ts";
import type { ObjectRef } from "../kube/types.ts";
import type { DeletionGuardOptions } from "./deletion-guard.ts";

export interface PodWeakness {
  /** What lowers its isolation. */
  readonly what: string;
  /** It was created with that; otherwise it was changed later. */
  readonly isFromCreation: boolean;
  /** The field manager that added it, for people; "unknown" if Kubernetes does not record it, as for a webhook. */
  readonly changedBy: string;
}

export interface PodMember {
  readonly ref: ObjectRef;
  readonly uid: string;
  readonly isRunning: boolean;
  readonly weakness: PodWeakness | undefined;
}

export interface WeakPod extends PodMember {
  readonly weakness: PodWeakness;
}

/** The pods of one deployment. */
export interface PodGroup {
  /** What they belong to: the kind with namespace and name. */
  readonly owner: string;
  /** How many it should have, and by which version of desired state. */
  readonly wanted: { readonly replicas: number; readonly version: bigint };
  readonly replacement: PodReplacement;
  /** Empty unless the owner's seal proves that it is krane's. */
  members(): readonly PodMember[];
  hasWeak(): boolean;
  /** The replicas of the live owner. */
  replicas(): number;
  /** Whether as many pods are ready as its owner asks for. */
  isComplete(): boolean;
  /** How many pods the controller has, of all deployments. */
  podsInAll(): number;
}

export type PodDecision =
  | { readonly kind: "nothing" }
  | { readonly kind: "evict"; readonly pod: WeakPod; readonly reason: string }
  | { readonly kind: "wait"; readonly reason: string }
  /** "raised": it may have one more pod, which shows whether that has ended. */
  | { readonly kind: "hold"; readonly reason: string; readonly limit: "same" | "lowered" | "raised" }
  /** It is no longer held. */
  | { readonly kind: "release" };

export type ReplacementBudget = Pick<
  DeletionGuardOptions,
  "budgetObjects" | "budgetFraction" | "budgetWindowMs"
>;

// A deployment whose pods do not become ready must not keep its weak pods for ever.
const patienceMs = 300_000;
// A pod that was created within this time of a replacement is taken for it.
const rememberedMs = 3_600_000;
const probeMs = 3_600_000;
const ownersMax = 10_000;

interface Replaced {
  readonly atMs: number;
  /** The uids of the pods that were there before. */
  readonly known: ReadonlySet<string>;
}

/** What the live owner shows of a hold. */
export interface ShownHold {
  readonly isHeld: boolean;
  readonly replicas: number;
  readonly wanted: number;
  readonly version: bigint;
  pods(): readonly string[];
}

interface Hold {
  /** How many pods it may have. */
  limit: number;
  /** The uids of the pods that were there when it was held, or came since and were weak. */
  readonly known: Set<string>;
  triedMs: number;
  version: bigint;
  reason: string;
  /** Another process began it, and this one has not changed it. */
  isFollowed?: boolean;
}

export class PodReplacement {
  private readonly budget: ReplacementBudget;
  private readonly clock: Clock;
  private readonly replaced = new Map<string, Replaced>();
  private readonly holds = new Map<string, Hold>();
  /** Released by this process, while the owner may still carry the mark. */
  private readonly decided = new Set<string>();
  /** When each pod was counted against the budget. One whose eviction keeps failing counts once, and not for each attempt. */
  private readonly counted = new Map<
    string,
    { readonly namespace: string | undefined; readonly atMs: number }
  >();

  constructor(budget: ReplacementBudget, clock: Clock) {
    this.budget = budget;
    this.clock = clock;
  }

  /** How many pods the owner may have; undefined if it is not held. */
  limitOf(owner: string): number | undefined {
    return this.holds.get(owner)?.limit;
  }

  forget(owner: string): void {
    this.replaced.delete(owner);
    this.holds.delete(owner);
    this.decided.delete(owner);
  }

  /** Continues the hold of another process, and ends it with that one. */
  follow(owner: string, { isHeld, replicas, wanted, version, pods }: ShownHold): void {
    const hold = this.holds.get(owner);
    if (!isHeld) {
      this.decided.delete(owner);
      // The other one has ended it.
      if (hold?.isFollowed && replicas >= wanted) this.holds.delete(owner);
      return;
    }
    if (hold !== undefined || this.decided.has(owner) || replicas >= wanted) return;
    this.keepHold(owner, {
      limit: replicas,
      known: new Set(pods()),
      triedMs: this.clock.nowMs(),
      version,
      reason: heldReason(owner, ", as an earlier leader saw"),
      isFollowed: true,
    });
  }

  private keepHold(owner: string, hold: Hold): void {
    if (this.holds.size >= ownersMax) this.holds.clear();
    this.holds.set(owner, hold);
  }

  next(group: PodGroup): PodDecision {
    const hold = this.holds.get(group.owner);
    if (hold !== undefined) return this.continueHold(group, hold);
    const weak = group.members().filter(isWeak);
    const [pod] = weak;
    if (pod === undefined) return { kind: "nothing" };
    const nowMs = this.clock.nowMs();
    const last = this.replaced.get(group.owner);
    const isRecent = last !== undefined && nowMs - last.atMs < rememberedMs;
    if (isRecent && newcomers(weak, last.known).length > 0) return this.startHold(group, last.known);
    const about = `pod ${pod.ref.name} is less isolated than its template (${pod.weakness.what})`;
    if (isRecent && !group.isComplete() && nowMs - last.atMs < patienceMs)
      return {
        kind: "wait",
        reason: `${about}; it is evicted when the replacement of the previous one is ready`,
      };
    const budget = this.usedBudget(pod, group.podsInAll(), nowMs);
    if (budget !== undefined) return { kind: "wait", reason: `${about}; ${budget}` };
    return { kind: "evict", pod, reason: `${about}; krane evicted it` };
  }

  /** Call it before the eviction of this pod is sent. Returns what undoes it, for an eviction that was refused. */
  note(group: PodGroup, { uid, ref: { namespace } }: PodMember): () => void {
    const { owner } = group;
    const before = this.replaced.get(owner);
    const nowMs = this.clock.nowMs();
    if (this.replaced.size >= ownersMax) this.replaced.clear();
    this.replaced.set(owner, { atMs: nowMs, known: new Set(group.members().map(({ uid }) => uid)) });
    const isCounted = this.counted.has(uid);
    if (!isCounted) this.counted.set(uid, { namespace, atMs: nowMs });
    return () => {
      if (before === undefined) this.replaced.delete(owner);
      else this.replaced.set(owner, before);
      if (!isCounted) this.counted.delete(uid);
    };
  }

  private startHold(group: PodGroup, known: ReadonlySet<string>): PodDecision {
    const hold: Hold = {
      limit: group.replicas(),
      known: new Set(known),
      triedMs: this.clock.nowMs(),
      version: group.wanted.version,
      reason: "",
    };
    this.keepHold(group.owner, hold);
    return this.continueHold(group, hold);
  }

  private continueHold(group: PodGroup, hold: Hold): PodDecision {
    const members = group.members();
    const weak = newcomers(members.filter(isWeak), hold.known);
    const [first] = weak;
    const nowMs = this.clock.nowMs();
    if (first !== undefined) {
      hold.isFollowed = false;
      hold.limit = Math.max(0, Math.min(hold.limit, group.replicas()) - weak.length);
      for (const { uid } of weak) hold.known.add(uid);
      hold.triedMs = nowMs;
      const { what, changedBy } = first.weakness;
      hold.reason = heldReason(group.owner, `: ${what}, changed by ${changedBy}`);
      return { kind: "hold", reason: hold.reason, limit: "lowered" };
    }
    const { replicas, version } = group.wanted;
    const isHelped = members.some(
      ({ uid, isRunning, weakness }) => isRunning && weakness === undefined && !hold.known.has(uid),
    );
    const isDue = nowMs - hold.triedMs >= probeMs || version > hold.version;
    if (isHelped || (isDue && hold.limit >= replicas)) {
      this.forget(group.owner);
      // The owner carries the mark until that is applied.
      this.decided.add(group.owner);
      return { kind: "release" };
    }
    if (!isDue) return { kind: "hold", reason: hold.reason, limit: "same" };
    hold.isFollowed = false;
    hold.limit += 1;
    hold.triedMs = nowMs;
    hold.version = version;
    return { kind: "hold", reason: hold.reason, limit: "raised" };
  }

  private usedBudget({ uid, ref }: PodMember, pods: number, nowMs: number): string | undefined {
    const { budgetObjects, budgetFraction, budgetWindowMs } = this.budget;
    for (const [counted, { atMs }] of this.counted)
      if (atMs <= nowMs - budgetWindowMs) this.counted.delete(counted);
    if (this.counted.has(uid)) return undefined;
    const budget = Math.max(budgetObjects, Math.floor(pods * budgetFraction));
    const text = `the budget of ${budget} evictions per ${budgetWindowMs / 60_000} minutes`;
    if (this.counted.size >= budget) return `${text} is used up`;
    const own = [...this.counted.values()].filter(({ namespace }) => namespace === ref.namespace);
    return own.length < Math.ceil(budget / 2) ? undefined : `its namespace has used half of ${text}`;
  }
}

function isWeak(pod: PodMember): pod is WeakPod {
  return pod.weakness !== undefined;
}

/** Pods that were created weak since. One that somebody changed later says nothing about the next one. */
function newcomers(weak: readonly WeakPod[], known: ReadonlySet<string>): readonly WeakPod[] {
  return weak.filter(({ uid, weakness }) => weakness.isFromCreation && !known.has(uid));
}

/** `krane why` recognises the beginning. */
function heldReason(owner: string, detail: string): string {
  return `the cluster lowers the isolation of pods of ${owner} when it creates them${detail}. It gets no new pods. Look for a mutating webhook or admission policy, or for somebody who creates such pods by hand`;
}
