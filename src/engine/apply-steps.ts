// Executes the steps of a plan: the only code that writes desired state to the cluster.
//
// - An object whose live content matches costs no request, also right after a start (K11).
// - force is used only on an object known to be krane's, together with its uid, so it can never hit another object.
//   An object that the cache does not show is looked up by name first and applied without force. The lookup is
//   skipped only in a namespace that krane has just created, for a manifest that the server would refuse to apply
//   over an object of somebody else.
// - An object that is not krane's, or belongs to another id, is never touched (K4), unless a person allowed to adopt it.
// - If a namespace vanishes between two steps, it is created again and the plan starts over.
import type { Clock } from "../concurrency/clock.ts";
import { namespaces, pods as podKind } from "../kube/resources.ts";
import type { ObjectRef, ResourceKind } from "../kube/types.ts";
import { isClaimable, type Stranger } from "../model/ownership.ts";
import { Adoptions, asUnsealed, isSealedStranger } from "./adoptions.ts";
import { type CheckedEntry, CheckedObjects } from "./checked-objects.ts";
import { isNotFound, isRefusal } from "./classify.ts";
import { type Contest, type ContestFacts, contestOver } from "./contest.ts";
import type { ContestedOutcome, Contests } from "./contests.ts";
import { KnownNamespaces } from "./known-namespaces.ts";
import {
  applied,
  isSealed,
  nameOf,
  ObjectWriter,
  type ObjectWriterDeps,
  type Rest,
  type WriteOutcome,
} from "./object-writer.ts";
import type { CheckedObject, LiveEntry, OwnedObject, OwnedTarget, PlanStep } from "./plan.ts";
import { evictPod } from "./pod-eviction.ts";
import { SealPace } from "./seal-pace.ts";
import type { SlowLane } from "./slow-lane.ts";

export type StepsOutcome =
  | WriteOutcome
  /** Another key has to be in sync first. */
  | { readonly kind: "waiting"; readonly key: string }
  /** The name is taken by an object that is not krane's, or has another id. */
  | { readonly kind: "conflict"; readonly reason: string }
  /** The previous object is still being deleted. */
  | { readonly kind: "deleting"; readonly reason: string }
  /** It is applied, and one of its pods is less isolated than its template and has to be replaced. */
  | { readonly kind: "replacing"; readonly reason: string }
  /** Another program keeps undoing it; nothing was tried. */
  | ContestedOutcome
  /** A precondition is not met, and the remaining steps need it. */
  | { readonly kind: "unmet"; readonly reason: string }
  /** It is applied, and does not work, because of something that krane cannot change. */
  | { readonly kind: "flawed"; readonly reason: string }
  /** Waiting out the shared back-off of a known obstacle; nothing was tried. */
  | { readonly kind: "backing-off"; readonly reason: string; readonly waitMs: number };

export interface ApplyDeps extends Omit<ObjectWriterDeps, "onConflict"> {
  readonly clock: Clock;
  readonly lane: SlowLane;
  readonly contests: Contests;
}

export interface Progress {
  /** The key that is reconciled. */
  readonly key: string;
  /** What was being written when a request failed: kind and namespace. */
  scope: string;
  /** The number of the desired state in the store. */
  readonly state: number;
  /** Whether anything was sent to the cluster. */
  hasSent: boolean;
  /** Another program that keeps undoing what krane does to one of the objects. */
  contest: Contest | undefined;
}

export function createProgress(key: string, state = 0): Progress {
  return { key, scope: "", state, hasSent: false, contest: undefined };
}

// What is written to an object that only gets its labels back, in the place of a manifest's hash.
const labelsOnly = "labels";

export class StepsApplier {
  /** What people allowed it to take over. */
  readonly adoptions: Adoptions;
  private readonly deps: ApplyDeps;
  private readonly spaces: KnownNamespaces;
  private readonly sealPace: SealPace;
  private readonly writer: ObjectWriter;
  private readonly checks: CheckedObjects;
  /** Checks in flight, by the name of the object. */
  private readonly checking = new Map<string, Promise<StepsOutcome>>();

  constructor(deps: ApplyDeps) {
    this.deps = deps;
    this.spaces = new KnownNamespaces(deps);
    this.sealPace = new SealPace(deps.clock);
    this.checks = new CheckedObjects(deps.clock);
    this.adoptions = new Adoptions(deps.clock);
    this.writer = new ObjectWriter({
      ...deps,
      // Another client writes to this namespace too: from now on, names in it are looked up before an apply.
      onConflict: (namespace) => this.spaces.age(namespace),
    });
  }

  /** The objects that are not watched, as they were last read. */
  checked(): Iterable<CheckedEntry> {
    return this.checks.all();
  }

  /** Whether there is nothing to do, as far as the caches show. */
  isDone(steps: readonly PlanStep[]): boolean {
    return steps.every((step) => this.isStepDone(step));
  }

  async apply(steps: readonly PlanStep[], progress: Progress, signal: AbortSignal): Promise<StepsOutcome> {
    try {
      // A live object proves its namespace, so krane need not try to create the namespaces after a restart.
      for (const step of steps)
        if (step.kind === "object" && step.object.live() !== undefined) this.noteNamespace(step.object.ref);
      return await this.run(steps, progress, signal);
    } catch (error) {
      if (!isNotFound(error)) throw error;
      // One of the namespaces may have been deleted meanwhile.
      for (const step of steps) if (step.kind === "namespace") this.forgetNamespace(step.name);
      return await this.run(steps, progress, signal, { isNewNamespace: true });
    }
  }

  /**
   * Gives their labels back to objects that no watch shows and that no step writes. Returns what stands against it, if
   * anything does.
   */
  async returnStrays(
    targets: readonly OwnedTarget[],
    progress: Progress,
    signal: AbortSignal,
  ): Promise<StepsOutcome | undefined> {
    for (const target of targets) {
      if (!target.isStray()) continue;
      const { kind, ref } = target;
      const name = nameOf(target);
      const describe = (facts: ContestFacts) =>
        contestOver(facts, { metadata: { labels: target.selectedLabelsOf(facts.found ?? {}) } });
      const object = { kind, ref, name, wanted: labelsOnly };
      const contested = await this.deps.contests.check(object, progress, describe, signal);
      if (contested) return contested;
      const held = this.enter(kind, ref, progress);
      if (held) return held;
      if (await this.writer.relabel(target, progress.key, signal))
        this.deps.contests.wrote(name, labelsOnly, progress.state);
    }
    return undefined;
  }

  private async run(
    steps: readonly PlanStep[],
    progress: Progress,
    signal: AbortSignal,
    { isNewNamespace } = { isNewNamespace: false },
  ): Promise<StepsOutcome> {
    let writes = 0;
    const rests: Rest[] = [];
    for (const step of steps) {
      if (step.kind === "await") {
        // If the namespace was gone, so is what the cache shows in it.
        const isCertain = step.isCertain && !isNewNamespace;
        if (step.isReady && (isCertain || (await step.confirm(signal)))) continue;
        return { kind: "waiting", key: step.key };
      }
      const outcome = await this.runStep(step, progress, signal);
      if (outcome.kind !== "applied") return outcome;
      writes += outcome.writes;
      if (outcome.rest !== undefined) rests.push(outcome.rest);
      isNewNamespace ||= step.kind === "namespace" && outcome.writes > 0;
    }
    return applied(writes, ...rests);
  }

  private runStep(
    step: Exclude<PlanStep, { kind: "await" }>,
    progress: Progress,
    signal: AbortSignal,
  ): Promise<StepsOutcome> {
    switch (step.kind) {
      case "namespace":
        return this.ensureNamespace(step.name, progress, signal);
      case "object":
        return this.applyOwned(step.object, progress, signal);
      case "checked":
        return this.applyChecked(step.object, progress, signal);
      case "pods":
        return this.replacePods(step, progress, signal);
      case "each":
        return this.runEach(step.steps(), progress, signal);
      case "unmet":
      case "flawed":
        return Promise.resolve(step);
    }
  }

  /** Runs every step, then returns or throws the first failure. */
  private async runEach(
    steps: readonly PlanStep[],
    progress: Progress,
    signal: AbortSignal,
  ): Promise<StepsOutcome> {
    let writes = 0;
    const rests: Rest[] = [];
    let failure: { readonly scope: string; conclude(): StepsOutcome } | undefined;
    for (const step of steps) {
      try {
        const outcome = await this.run([step], progress, signal);
        if (outcome.kind === "applied") {
          writes += outcome.writes;
          if (outcome.rest !== undefined) rests.push(outcome.rest);
        } else failure ??= { scope: progress.scope, conclude: () => outcome };
      } catch (error) {
        // If the server is unreachable, the other steps would each wait for their timeout.
        if (!isRefusal(error)) throw error;
        failure ??= {
          scope: progress.scope,
          conclude: () => {
            throw error;
          },
        };
      }
    }
    if (failure === undefined) return applied(writes, ...rests);
    progress.scope = failure.scope;
    return failure.conclude();
  }

  /** Creates the namespace if it is missing; an existing one is used as it is. */
  private async ensureNamespace(
    name: string,
    progress: Progress,
    signal: AbortSignal,
  ): Promise<StepsOutcome> {
    if (this.spaces.has(name)) return applied(0);
    const held = this.enter(namespaces, { name }, progress);
    return held ?? applied(await this.spaces.ensure(name, signal));
  }

  private isStepDone(step: PlanStep): boolean {
    switch (step.kind) {
      case "namespace":
        return this.spaces.has(step.name);
      case "await":
        return step.isReady;
      case "object":
        return this.isObjectDone(step.object);
      case "checked":
        return this.checks.isDone(nameOf(step.object));
      case "pods":
        return !step.pods.hasWeak() && step.pods.replacement.limitOf(step.pods.owner) === undefined;
      case "each":
        return this.isDone(step.steps());
      case "unmet":
      case "flawed":
        return false;
    }
  }

  private isObjectDone(object: OwnedObject): boolean {
    const live = object.live();
    if (live === undefined || live.deleting || !isSealed(live.ownership)) return false;
    return this.isAsWanted(object, object.contentHash, live);
  }

  /** The hash is a parameter because computing it may be expensive. */
  private isAsWanted(object: OwnedObject, contentHash: string, live: LiveEntry): boolean {
    if (live.contentHash === contentHash) return true;
    return this.deps.drift.isAsStored(nameOf(object), contentHash, live.contentHash);
  }

  private async applyOwned(
    object: OwnedObject,
    progress: Progress,
    signal: AbortSignal,
  ): Promise<StepsOutcome> {
    const { kind, ref, contentHash } = object;
    const name = nameOf(object);
    const shown = object.live();
    const isAdoption = shown !== undefined && this.mayAdopt(name, shown);
    const cached = isAdoption ? object.adoptee() : shown;
    if (cached !== undefined) {
      const verdict = judge(name, cached);
      if (verdict) return verdict;
      this.noteNamespace(ref);
      if (this.isAsWanted(object, contentHash, cached)) {
        const left = this.deps.drift.leftOf(name, contentHash);
        if (isSealed(cached.ownership)) return applied(0, { left });
        const sealAfterMs = this.sealPace.waitMs(name);
        if (sealAfterMs > 0) return applied(0, { left, sealAfterMs });
      }
    }
    const describe = (facts: ContestFacts) => contestOver(facts, object.manifest());
    const contested = await this.deps.contests.check(
      { kind, ref, name, wanted: contentHash },
      progress,
      describe,
      signal,
    );
    if (contested) return contested;
    const held = this.enter(kind, ref, progress);
    if (held) return held;
    const live = cached ?? (this.isSurelyNew(object, name) ? undefined : await this.lookUp(object, signal));
    const verdict = live && judge(name, live);
    if (verdict) return verdict;
    const outcome = await this.writer.write(object, live, progress.key, signal);
    if (outcome.kind !== "applied" || outcome.writes > 0)
      this.deps.contests.wrote(name, contentHash, progress.state);
    if (isAdoption) this.adopted(object, shown, progress);
    this.sealPace.forget(name);
    this.noteNamespace(ref);
    return outcome;
  }

  private mayAdopt(name: string, { uid, ownership }: Pick<LiveEntry, "uid" | "ownership">): boolean {
    return isSealedStranger(ownership) && this.adoptions.isAllowed(name, uid);
  }

  private adopted(
    object: Pick<OwnedObject, "kind" | "ref">,
    { uid, ownership }: Pick<LiveEntry, "uid" | "ownership">,
    { key }: Progress,
  ): void {
    const { kind, ref } = object;
    this.adoptions.used(nameOf(object));
    const reason = "reason" in ownership ? ownership.reason : "";
    this.deps.actions.recordAdoption(key, { kind, ref, uid }, reason);
  }

  /** An object that this process wrote before may have lost its labels since, so it is never surely new. */
  private isSurelyNew({ ref, refusesStrangers }: OwnedObject, name: string): boolean {
    const isNewPlace = ref.namespace !== undefined && this.spaces.isNew(ref.namespace);
    return refusesStrangers && isNewPlace && !this.deps.drift.knows(name);
  }

  /** The cache selects by krane's labels. Objects without them can only be found by name. */
  private async lookUp(object: OwnedObject, signal: AbortSignal): Promise<LiveEntry | undefined> {
    const found = await this.deps.api.get(object.kind, object.ref, { resourceVersion: "0" }, signal);
    const live = found && object.entryOf(found);
    if (found !== undefined && live !== undefined && isSealedStranger(live.ownership)) object.keep(found);
    return live;
  }

  /** Many keys share such an object: while one of them writes it, the others wait. */
  private async applyChecked(
    object: CheckedObject,
    progress: Progress,
    signal: AbortSignal,
  ): Promise<StepsOutcome> {
    const name = nameOf(object);
    const other = this.checking.get(name);
    if (other !== undefined) await other.catch(() => undefined);
    if (this.checks.isDone(name)) return applied(0);
    const check = this.check(object, progress, signal);
    this.checking.set(name, check);
    try {
      return await check;
    } finally {
      if (this.checking.get(name) === check) this.checking.delete(name);
    }
  }

  private async check(object: CheckedObject, progress: Progress, signal: AbortSignal): Promise<StepsOutcome> {
    const { kind, ref } = object;
    const name = nameOf(object);
    const held = this.enter(kind, ref, progress);
    if (held) return held;
    const live = await this.deps.api.get(kind, ref, {}, signal);
    const uid = live?.metadata?.uid ?? "";
    const judged = live && object.judge(live);
    const isAdoption = judged !== undefined && this.mayAdopt(name, { uid, ownership: judged });
    const ownership = isAdoption ? asUnsealed : judged;
    if (ownership !== undefined && !isClaimable(ownership)) {
      this.checks.note(name, object, { uid, ownership, isDone: false });
      return conflict(name, ownership);
    }
    const isCurrent =
      live !== undefined && ownership !== undefined && isSealed(ownership) && object.isCurrent(live);
    const wasThere = this.checks.has(name);
    const stored = isCurrent
      ? live
      : await this.writer.writeChecked(object, live, { key: progress.key, wasThere }, signal);
    const reading = { uid: stored.metadata?.uid ?? uid, ownership: object.judge(stored), isDone: true };
    this.checks.note(name, object, reading);
    if (isAdoption) this.adopted(object, { uid, ownership: judged }, progress);
    return applied(isCurrent ? 0 : 1);
  }

  /** Replaces pods that are less isolated than their template, and stops where that does not help. */
  private async replacePods(
    step: Extract<PlanStep, { kind: "pods" }>,
    progress: Progress,
    signal: AbortSignal,
  ): Promise<StepsOutcome> {
    const { pods, object } = step;
    const decision = pods.replacement.next(pods);
    switch (decision.kind) {
      case "nothing":
        return applied(0);
      case "wait":
        return { kind: "replacing", reason: decision.reason };
      case "evict": {
        const held = this.enter(podKind, object.ref, progress);
        if (held) return held;
        return evictPod(decision, pods, progress.key, this.deps, signal);
      }
      case "release":
        return this.applyOwned(object, progress, signal);
      case "hold": {
        const { reason, limit } = decision;
        if (limit === "same") return { kind: "held", reason };
        const outcome = await this.applyOwned(object, progress, signal);
        if (outcome.kind !== "applied") return outcome;
        this.recordHold(step, progress.key, reason);
        return { kind: "held", reason };
      }
    }
  }

  private recordHold(
    { pods, object }: Extract<PlanStep, { kind: "pods" }>,
    key: string,
    reason: string,
  ): void {
    const { kind, ref } = object;
    const subject = { kind, ref, uid: object.live()?.uid ?? "" };
    this.deps.actions.recordHold(key, subject, pods.replacement.limitOf(pods.owner) ?? 0, reason);
  }

  private enter(kind: ResourceKind, ref: ObjectRef, progress: Progress): StepsOutcome | undefined {
    progress.scope = `${kind.kind}/${ref.namespace ?? ""}`;
    const wait = this.deps.lane.wait(progress.scope);
    if (wait) return { kind: "backing-off", ...wait };
    progress.hasSent = true;
    return undefined;
  }

  private noteNamespace({ namespace }: ObjectRef): void {
    if (namespace !== undefined) this.spaces.note(namespace);
  }

  private forgetNamespace(name: string): void {
    this.spaces.forget(name);
    this.checks.forgetNamespace(name);
  }
}

function judge(name: string, live: LiveEntry): StepsOutcome | undefined {
  if (!isClaimable(live.ownership)) return conflict(name, live.ownership);
  return live.deleting
    ? { kind: "deleting", reason: `the previous ${name} is still being deleted` }
    : undefined;
}

function conflict(name: string, ownership: Stranger): StepsOutcome {
  const what = ownership.kind === "foreign" ? "is not krane's" : "belongs to another id";
  return { kind: "conflict", reason: `${name} ${what}: ${ownership.reason}` };
}
