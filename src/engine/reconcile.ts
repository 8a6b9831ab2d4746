// Reconciles one key: compares the store with the caches and applies or deletes what differs. Level-triggered, so it
// works from any state. It records the outcome, settles the version and decides when the key comes up again.
import { isAbort } from "../concurrency/abort.ts";
import type { Clock } from "../concurrency/clock.ts";
import type { WorkOutcome, WorkPriority } from "../concurrency/work-queue.ts";
import type { KubeApi } from "../kube/api.ts";
import { objectKey } from "../kube/object-cache.ts";
import { isClaimable } from "../model/ownership.ts";
import type { Log } from "../telemetry/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { ActionRecords } from "./action-records.ts";
import { isSealedStranger } from "./adoptions.ts";
import { createProgress, type Progress, type StepsApplier, type StepsOutcome } from "./apply-steps.ts";
import { backoffs, classifyFailure, classifyProblems, type Failure, isRefusal } from "./classify.ts";
import { contestOverDeletion } from "./contest.ts";
import type { Contests } from "./contests.ts";
import type { ControllerDefinition } from "./controller-definition.ts";
import type { Authority, DeletionBasis, DeletionGuard } from "./deletion-guard.ts";
import type { DesiredEntry, DesiredStore } from "./desired-store.ts";
import type { KeyPace } from "./key-pace.ts";
import { isTroubled, type ObjectStatuses, type OutcomeChange } from "./object-status.ts";
import type { LiveEntry, OwnedTarget, Plan } from "./plan.ts";
import type { SlowLane } from "./slow-lane.ts";
import type { VersionCursor } from "./version-cursor.ts";
import { WaitingKeys } from "./waiting-keys.ts";
import { deletion } from "./write-pace.ts";

export interface ReconcileDeps<Spec> {
  /** The controller's name. */
  readonly controller: string;
  readonly definition: ControllerDefinition<Spec>;
  readonly store: DesiredStore<Spec>;
  readonly cursor: VersionCursor;
  readonly guard: DeletionGuard;
  readonly statuses: ObjectStatuses;
  readonly applier: StepsApplier;
  readonly actions: ActionRecords;
  readonly lane: SlowLane;
  readonly keyPace: Pick<KeyPace, "wrote">;
  readonly contests: Contests;
  readonly api: KubeApi;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Pick<Metrics, "reconcileOperations" | "reconcileDuration">;
  enqueue(key: string, priority: WorkPriority): void;
  report(key: string): void;
  /** Makes the record of the key's order match the store, before the key is reconciled. */
  settleOrder?(key: string, signal: AbortSignal): Promise<void>;
  /** The key's desired state may be older than what is applied. */
  isUnconfirmed?(key: string): boolean;
}

type Result =
  | StepsOutcome
  | { readonly kind: "deleted"; readonly writes: number }
  | { readonly kind: "failed"; readonly failure: Failure }
  | { readonly kind: "unmet"; readonly reason: string }
  | { readonly kind: "blocked"; readonly reason: string }
  | { readonly kind: "later"; readonly afterMs: number }
  | { readonly kind: "nothing" };

const done: WorkOutcome = { kind: "done" };
// A key in this state is woken by an event. If the event does not come, the key is retried after this long.
const lookAgainMs = 30_000;

export class Reconciler<Spec> {
  private readonly deps: ReconcileDeps<Spec>;
  /** The last state of each key that the cluster accepted. It stays in force while a newer one is rejected. */
  private readonly accepted = new Map<string, DesiredEntry<Spec>>();
  private readonly waiting: WaitingKeys;

  constructor(deps: ReconcileDeps<Spec>) {
    this.deps = deps;
    this.waiting = new WaitingKeys(deps);
  }

  /** Enqueues the keys that this one would otherwise have to wait for. */
  prepare(key: string): void {
    const { store, definition } = this.deps;
    const entry = store.get(key);
    for (const other of (entry && definition.prerequisites?.(entry)) ?? []) this.waiting.bringUp(other);
  }

  /** The key will not come back. */
  forget(key: string): void {
    this.accepted.delete(key);
    this.deps.contests.forget(key);
  }

  async reconcile(key: string, signal: AbortSignal): Promise<WorkOutcome> {
    const { controller, store, clock, metrics, keyPace, contests } = this.deps;
    const entry = store.get(key);
    const startedMs = clock.nowMs();
    const progress = createProgress(key, entry?.sequence);
    const operation = entry?.want.kind === "delete" ? "delete" : "apply";
    const result = await this.attempt(key, entry, progress, signal);
    if (progress.hasSent) keyPace.wrote(key);
    if (progress.contest) contests.announce(key, progress.contest, signal);
    if (isWork(result)) {
      const durationMs = clock.nowMs() - startedMs;
      this.logWork(key, entry, { operation, durationMs, result });
      metrics.reconcileDuration.observe({ controller, operation }, durationMs / 1_000);
      metrics.reconcileOperations.inc({
        controller,
        operation,
        result: result.kind === "failed" ? "error" : "success",
      });
    }
    return this.conclude(key, entry, result, progress);
  }

  private logWork(
    key: string,
    entry: DesiredEntry<Spec> | undefined,
    { operation, durationMs, result }: { operation: string; durationMs: number; result: Result },
  ): void {
    const { controller, log } = this.deps;
    const failure = result.kind === "failed" ? result.failure : undefined;
    log.event("reconciled", {
      controller,
      key,
      operation,
      outcome: failure?.kind ?? result.kind,
      version: entry?.version,
      count: "writes" in result ? result.writes : undefined,
      durationMs,
      // A rejected spec is not krane's failure; its own line names the field.
      error:
        failure && failure.kind !== "rejected"
          ? { name: "ReconcileFailure", message: failure.reason }
          : undefined,
    });
  }

  private async attempt(
    key: string,
    entry: DesiredEntry<Spec> | undefined,
    progress: Progress,
    signal: AbortSignal,
  ): Promise<Result> {
    try {
      await this.deps.settleOrder?.(key, signal);
      const result = await this.tryWanted(key, entry, progress, signal);
      const isRejected = result.kind === "failed" && result.failure.kind === "rejected";
      const kept = isRejected ? await this.keepAccepted(key, entry, result, progress, signal) : result;
      if (kept.kind === "applied" || kept.kind === "deleted") return kept;
      const { applier, definition } = this.deps;
      return (await applier.returnStrays(definition.targets(key, entry), progress, signal)) ?? kept;
    } catch (error) {
      if (isAbort(error, signal)) throw error;
      const failure = classifyFailure(error);
      if (failure !== undefined) return { kind: "failed", failure };
      this.write(key, entry, { outcome: "retrying", reason: "internal error in krane; see its log" });
      throw error;
    }
  }

  private async tryWanted(
    key: string,
    entry: DesiredEntry<Spec> | undefined,
    progress: Progress,
    signal: AbortSignal,
  ): Promise<Result> {
    try {
      return await this.carryOut(key, entry, progress, signal);
    } catch (error) {
      const failure = classifyFailure(error);
      if (failure?.kind !== "rejected") throw error;
      return { kind: "failed", failure };
    }
  }

  /**
   * A rejected version leaves the last accepted one in force: drift from that one is still repaired. A rejected
   * deletion does not (K3), and neither does a version of another id that has got the name.
   */
  private async keepAccepted(
    key: string,
    entry: DesiredEntry<Spec> | undefined,
    rejected: Result,
    progress: Progress,
    signal: AbortSignal,
  ): Promise<Result> {
    const { definition, applier } = this.deps;
    const accepted = this.accepted.get(key);
    if (accepted === undefined || accepted === entry) return rejected;
    if (entry === undefined || entry.want.kind === "delete" || entry.id !== accepted.id) return rejected;
    const plan = definition.plan(key, accepted);
    if (plan.kind !== "apply") return rejected;
    const kept = await applier.apply(plan.steps, progress, signal);
    return kept.kind === "applied" ? rejected : kept;
  }

  private async applyPlan(
    key: string,
    { steps, leftovers = [] }: Extract<Plan, { readonly kind: "apply" }>,
    progress: Progress,
    signal: AbortSignal,
  ): Promise<Result> {
    const outcome = await this.deps.applier.apply(steps, progress, signal);
    if (outcome.kind !== "applied" || leftovers.length === 0) return outcome;
    const removed = await this.remove(key, leftovers, "unused", progress, signal);
    return removed.kind === "deleted" ? { ...outcome, writes: outcome.writes + removed.writes } : removed;
  }

  private async carryOut(
    key: string,
    entry: DesiredEntry<Spec> | undefined,
    progress: Progress,
    signal: AbortSignal,
  ): Promise<Result> {
    const { definition, guard } = this.deps;
    const isThere = definition.managedByKey(key) !== undefined;
    if (isThere ? guard.isSuspected(key) : guard.isConfirmed(key)) {
      const gone = await this.remove(key, definition.targets(key, entry), "absence", progress, signal);
      if (gone.kind !== "blocked") return gone;
      if (entry?.want.kind !== "apply" || this.deps.isUnconfirmed?.(key) === true) return gone;
      // The deletion is held back, so the last desired state still applies.
      const kept = await this.follow(key, definition.plan(key, entry), progress, signal);
      return kept.kind === "applied" ? gone : kept;
    }
    if (entry?.want.kind === "invalid")
      return { kind: "failed", failure: classifyProblems(entry.want.problems) };
    const plan = definition.plan(key, entry);
    return this.follow(key, plan, progress, signal);
  }

  private async follow(key: string, plan: Plan, progress: Progress, signal: AbortSignal): Promise<Result> {
    switch (plan.kind) {
      case "apply":
        return this.applyPlan(key, plan, progress, signal);
      case "delete":
        return this.remove(key, plan.targets, plan.authority, progress, signal);
      default:
        return plan;
    }
  }

  /**
   * Deletes every target; one that is missing counts as deleted. A target that fails or takes long to go does not
   * stop the others, because they may be the ones that run pods. The first failure is the result.
   */
  private async remove(
    key: string,
    targets: readonly OwnedTarget[],
    authority: Authority,
    progress: Progress,
    signal: AbortSignal,
  ): Promise<Result> {
    let writes = 0;
    let left: { readonly result: Result; readonly scope: string } | undefined;
    const blocked = this.objection(key, targets, authority);
    if (blocked !== undefined) return blocked;
    for (const target of targets) {
      progress.scope = `${target.kind.kind}/${target.ref.namespace ?? ""}`;
      const result = await this.removeOne(key, target, authority, progress, signal).catch(refusalOf);
      if (result.kind === "blocked") return result;
      if (result.kind === "deleted") writes += result.writes;
      else left ??= { result, scope: progress.scope };
    }
    if (left === undefined) return { kind: "deleted", writes };
    progress.scope = left.scope;
    return left.result;
  }

  private async removeOne(
    key: string,
    target: OwnedTarget,
    authority: Authority,
    progress: Progress,
    signal: AbortSignal,
  ): Promise<Result> {
    const { guard, api, lane, actions, contests } = this.deps;
    const { kind, ref } = target;
    const live = target.live() ?? (await this.lookUp(target, signal));
    if (live === undefined) return { kind: "deleted", writes: 0 };
    const name = `${kind.kind} ${objectKey(ref)}`;
    const permission = guard.permit({ key, ...live, authority });
    if (permission.kind === "blocked") return permission;
    if (permission.kind === "not-ours")
      return { kind: "conflict", reason: `${name} is not deleted: ${permission.reason}` };
    const deleting = { kind: "deleting", reason: `${name} is still being deleted` } as const;
    if (live.deleting) return deleting;
    const object = { kind, ref, name, wanted: deletion };
    const contested = await contests.check(object, progress, contestOverDeletion, signal);
    if (contested !== undefined) return contested;
    const wait = lane.wait(progress.scope);
    if (wait) return { kind: "backing-off", ...wait };
    progress.hasSent = true;
    const { uid, basis } = permission;
    const options = { uid, propagation: "Background" } as const;
    const outcome = await target.delete(uid, () => api.delete(kind, ref, options, signal), signal);
    contests.wrote(name, deletion, progress.state);
    if (outcome.kind !== "absent")
      actions.recordDeletion(key, { kind, ref, uid }, this.basisOf(key, basis), outcome.kind === "deleted");
    return outcome.kind === "deleting" ? deleting : { kind: "deleted", writes: 1 };
  }

  private basisOf(key: string, basis: DeletionBasis): DeletionBasis {
    if (basis.authority !== "explicit delete") return basis;
    const entry = this.deps.store.get(key);
    if (entry?.origin === "scheduler") return { ...basis, reason: "ordered through SchedulerService" };
    const version = entry === undefined ? "" : ` with version ${entry.version}`;
    return { ...basis, reason: `the control plane ordered it${version}` };
  }

  /** Asks the guard about all targets before the first delete, so that an object is never deleted by half. */
  private objection(key: string, targets: readonly OwnedTarget[], authority: Authority): Result | undefined {
    const standing = targets.flatMap(({ kind, ref, live: look }) => {
      const live = look();
      return live === undefined ? [] : [{ kind, ref, ...live }];
    });
    for (const live of standing) {
      const permission = this.deps.guard.permit({ ...live, key, authority });
      if (permission.kind !== "blocked") continue;
      // The last target is the main object, which the others belong to and which people describe.
      const isNews = this.deps.statuses.get(key)?.outcome !== "blocked";
      if (isNews) this.deps.actions.recordBlockedDeletion(standing.at(-1) ?? live, permission.reason);
      return permission;
    }
    return undefined;
  }

  private async lookUp(target: OwnedTarget, signal: AbortSignal): Promise<LiveEntry | undefined> {
    const { kind, ref, isLookedUp, entryOf } = target;
    const found = isLookedUp ? await this.deps.api.get(kind, ref, {}, signal) : undefined;
    const live = found && entryOf(found);
    if (found === undefined || live === undefined) return undefined;
    if (isSealedStranger(live.ownership)) target.keep(found);
    // Anything else is an unrelated object with the same name.
    else if (!isClaimable(live.ownership)) return undefined;
    return live;
  }

  private conclude(
    key: string,
    entry: DesiredEntry<Spec> | undefined,
    result: Result,
    progress: Progress,
  ): WorkOutcome {
    const { lane } = this.deps;
    switch (result.kind) {
      case "applied":
        if (result.writes > 0 && progress.scope !== "") lane.succeeded(progress.scope);
        if (entry?.want.kind === "apply") this.accepted.set(key, entry);
        this.settle(key, entry, {
          outcome: result.writes > 0 ? "applied" : "unchanged",
          reason: result.rest?.left,
        });
        this.waiting.wake(key);
        return result.rest?.sealAfterMs === undefined
          ? done
          : { kind: "again", afterMs: result.rest.sealAfterMs };
      case "deleted":
        if (result.writes > 0 && progress.scope !== "") lane.succeeded(progress.scope);
        this.concludeDelete(key, entry);
        return done;
      case "nothing":
        this.deps.statuses.forget(key);
        this.waiting.wake(key);
        return done;
      case "later":
        return { kind: "again", afterMs: result.afterMs };
      case "waiting":
        this.write(key, entry, this.waiting.add(key, result.key));
        return { kind: "again", afterMs: lookAgainMs };
      case "deleting":
        this.write(key, entry, { outcome: "pending", reason: result.reason });
        return { kind: "again", afterMs: lookAgainMs };
      case "blocked":
        this.write(key, entry, { outcome: "blocked", reason: result.reason });
        return done;
      case "contested":
        this.settle(key, entry, { outcome: "retrying", reason: result.reason });
        return { kind: "again", afterMs: result.waitMs };
      case "held":
        this.settle(key, entry, { outcome: "parked", reason: result.reason });
        return { kind: "retry", backoff: backoffs.rejected };
      case "replacing":
      case "flawed":
        this.settle(key, entry, {
          outcome: "retrying",
          reason: result.reason,
          ...(entry !== undefined && { appliedVersion: entry.version }),
        });
        return { kind: "retry", backoff: backoffs.slow };
      case "conflict":
        this.settle(key, entry, { outcome: "conflict", reason: result.reason });
        return { kind: "retry", backoff: backoffs.conflict };
      case "backing-off":
        this.write(key, entry, { outcome: "retrying", reason: result.reason });
        return { kind: "again", afterMs: result.waitMs };
      case "unmet":
        this.write(key, entry, { outcome: "retrying", reason: result.reason });
        return { kind: "retry", backoff: backoffs.slow };
      case "failed":
        return this.concludeFailure(key, entry, result.failure, progress);
    }
  }

  private concludeFailure(
    key: string,
    entry: DesiredEntry<Spec> | undefined,
    failure: Failure,
    progress: Progress,
  ): WorkOutcome {
    const { kind, reason, fieldPath, isOfServer } = failure;
    const { lane } = this.deps;
    if (kind === "rejected") {
      this.settle(key, entry, { outcome: "parked", reason, fieldPath });
      return { kind: "retry", backoff: backoffs.rejected };
    }
    this.write(key, entry, { outcome: "retrying", reason, fieldPath });
    if (kind === "slow" && progress.scope !== "")
      return { kind: "again", afterMs: lane.failed(progress.scope, reason).waitMs };
    const shared =
      isOfServer && progress.scope !== "" ? lane.struggled(progress.scope, key, reason) : undefined;
    const atLeastMs = Math.max(failure.atLeastMs ?? 0, shared?.waitMs ?? 0);
    return { kind: "retry", backoff: backoffs[kind], atLeastMs };
  }

  private concludeDelete(key: string, entry: DesiredEntry<Spec> | undefined): void {
    const { guard, store, cursor, statuses, definition, enqueue } = this.deps;
    if (entry?.want.kind === "delete") this.settle(key, entry, { outcome: "deleted" });
    else {
      // Deleted because it was absent upstream or unused: nothing is left to remember.
      if (store.get(key) === entry) store.remove(key);
      for (const other of (entry && definition.dependents?.(entry)) ?? []) enqueue(other, "fresh");
      cursor.forget(key);
      statuses.forget(key);
    }
    this.accepted.delete(key);
    guard.clear(key);
    this.waiting.wake(key);
    this.deps.report(key);
  }

  /** The version needs no more work: applied, or rejected (K2). */
  private settle(key: string, entry: DesiredEntry<Spec> | undefined, change: OutcomeChange): void {
    const isApplied = !isTroubled(change.outcome);
    this.write(key, entry, {
      ...change,
      ...(isApplied && entry !== undefined ? { appliedVersion: entry.version } : {}),
    });
    const { store, cursor } = this.deps;
    if (entry !== undefined && store.isNumbered(entry)) cursor.settle(key, entry.version);
  }

  private write(key: string, entry: DesiredEntry<Spec> | undefined, change: OutcomeChange): void {
    const { statuses, log } = this.deps;
    const { record, isNews } = statuses.record(key, change);
    this.waiting.show(key, record);
    if (!isNews) return;
    const fields = {
      controller: this.deps.controller,
      key,
      outcome: record.outcome,
      version: entry?.version,
      reason: record.reason === "" ? undefined : record.reason,
    };
    if (isTroubled(record.outcome)) log.warn("object out of sync", fields);
    else if (record.reason !== "" && record.outcome !== "pending")
      log.warn("the cluster changes what krane writes", fields);
    else if (record.outcome === "pending") log.debug("object pending", fields);
    // The event of a reconcile tells what was written.
    else log.debug("object in sync", fields);
  }
}

/** Turns a refusal of this one request into a result. Other errors are thrown. */
function refusalOf(error: unknown): Result {
  const failure = isRefusal(error) ? classifyFailure(error) : undefined;
  if (failure === undefined) throw error;
  return { kind: "failed", failure };
}

/** What the metrics count: a write, or an attempt that failed. */
function isWork(result: Result): boolean {
  return (
    result.kind === "failed" ||
    ((result.kind === "applied" || result.kind === "deleted") && result.writes > 0)
  );
}
