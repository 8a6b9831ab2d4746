// Runs one controller: the stream of desired state, the work queue with its workers, the watches, the resync and the
// reporter. Each is a supervised loop that is restarted alone when it fails. Controllers share nothing (K6).
//
// - start() resolves when the watches are open. If they cannot be opened it rejects, with nothing left running.
// - stop() may be called at any time and any number of times; when it resolves, nothing runs.
import type { DescMessage } from "@bufbuild/protobuf";
import { linkSignals } from "../concurrency/abort.ts";
import type { CircuitBreaker } from "../concurrency/circuit-breaker.ts";
import { sleep } from "../concurrency/clock.ts";
import { type Loop, supervise } from "../concurrency/supervisor.ts";
import { type WorkOutcome, WorkQueue } from "../concurrency/work-queue.ts";
import { createDesiredStream, type DesiredStream } from "../control-plane/desired-stream.ts";
import { reportsPerCall } from "../control-plane/report-batches.ts";
import type { BlockedDeletion, ControllerStatus, ObjectStatus } from "../gen/krane/v1/agent_pb.ts";
import { createSoleLeadership, type Term } from "../kube/leadership.ts";
import { ActionRecords } from "./action-records.ts";
import { StepsApplier } from "./apply-steps.ts";
import { backoffs, classifyFailure } from "./classify.ts";
import { Contests } from "./contests.ts";
import {
  type ControllerDefinition,
  type ControllerRecipe,
  namespaceOf,
  type WatchedObject,
  whenWatching,
} from "./controller-definition.ts";
import type { ControllerDeps, ControllerOptions } from "./controller-options.ts";
import {
  blockedDeletionMessage,
  controllerStatusMessage,
  countObjects,
  type KnownObjects,
  listObjects,
  type ObjectFilter,
  revisionOf,
} from "./controller-status.ts";
import { DeletionGuard } from "./deletion-guard.ts";
import { type ReadState, readDelete, readState } from "./desired-message.ts";
import { DesiredStore } from "./desired-store.ts";
import { DriftMemory } from "./drift-memory.ts";
import { countRepair } from "./drift-repair.ts";
import type { ApplyOf, DeleteOf, EngineKind, OrderedSpec } from "./engine-kind.ts";
import { followIncarnations, resetCursor } from "./incarnation.ts";
import { KeptOrders, takeOrder } from "./kept-orders.ts";
import { KeyPace } from "./key-pace.ts";
import { LastRepairs } from "./last-repairs.ts";
import { createMeteredKubeApi } from "./metered-kube-api.ts";
import { createEventRecorder, type EventRecorder } from "./object-events.ts";
import { ObjectStatuses } from "./object-status.ts";
import { OrderWaits, type ReadOrder, readOrder, restoreOrder } from "./orders.ts";
import type { Reconciler } from "./reconcile.ts";
import { createReconciler } from "./reconcile-spans.ts";
import { Remembered } from "./remembered.ts";
import { createReportBreaker, createReportSender, Reporter, reportEvents } from "./reporter.ts";
import { createQuestions, isInSync, Resync, type ResyncResult } from "./resync.ts";
import {
  createSeenObjects,
  type KeyListener,
  type KindController,
  type OrderOutcome,
  type SeenObjects,
} from "./running-controller.ts";
import { SealInspector } from "./seal-inspector.ts";
import { SlowLane, slowNamespaceWarning } from "./slow-lane.ts";
import { inEachTerm, restoreOrders, type TakeOverParts, takeOver } from "./take-over.ts";
import { UnconfirmedKeys } from "./unconfirmed-keys.ts";
import { VersionCursor } from "./version-cursor.ts";

export const questionsAtOnce = 10;
// As many as fill a call for several.
const reportsAtOnce = reportsPerCall;
// Responses about many keys that contradict the store come at the same time, and one replay is enough for all.
const replayOnceWithinMs = 1_000;

export class Controller<
  State extends DescMessage,
  Spec extends OrderedSpec,
  Report extends DescMessage,
  Seen,
  Settings,
> implements KindController<State, Seen, Spec>
{
  readonly seen: SeenObjects<Seen>;
  readonly seals: SealInspector<Spec>;
  private readonly kind: EngineKind<State, Spec, Report>;
  readonly desired: Pick<DesiredStore<Spec>, "get">;
  private readonly store: DesiredStore<Spec>;
  private readonly definition: ControllerDefinition<Spec, Seen>;
  private readonly listeners = new Set<KeyListener>();
  private readonly options: ControllerOptions;
  private readonly deps: ControllerDeps;
  private readonly cursor = new VersionCursor();
  private readonly guard: DeletionGuard;
  private readonly statuses: ObjectStatuses;
  private readonly queue: WorkQueue;
  private readonly breaker: CircuitBreaker;
  private readonly reporter: Reporter;
  private readonly reconciler: Reconciler<Spec>;
  private readonly unconfirmed: UnconfirmedKeys<Spec>;
  private readonly resync: Resync<Spec>;
  private readonly stream: DesiredStream;
  private readonly orders = new OrderWaits();
  private readonly kept: KeptOrders<Spec>;
  private readonly pace: KeyPace;
  private readonly events: EventRecorder;
  private readonly repairs: LastRepairs;
  private readonly objectCount = new Remembered<number>();
  private readonly failing = new Remembered<ReadonlyMap<string, string>>();
  private readonly stopping = new AbortController();
  private lastResync: ResyncResult | undefined;
  private running: Promise<unknown> | undefined;
  private stopped: Promise<void> | undefined;

  constructor(
    kind: EngineKind<State, Spec, Report>,
    recipe: ControllerRecipe<Spec, Report, Seen, Settings>,
    options: ControllerOptions & Settings,
    deps: ControllerDeps,
  ) {
    const { clock, log, metrics, spans, controlPlane, seal } = deps;
    this.kind = kind;
    this.options = options;
    this.deps = deps;
    this.pace = new KeyPace(clock);
    const api = createMeteredKubeApi(deps.api, kind.controller, deps);
    const store = new DesiredStore<Spec>(clock, recipe.groupOf, () => controlPlane.history.isNamed);
    const definition = recipe.define(options, {
      ...deps,
      ...(options.drift !== undefined && { tolerance: options.drift }),
      api,
      store,
      isInformed: () => this.isInformed(),
      report: createReportSender(kind, options.reporting, deps),
      onError: (watched, error) => this.onWatchError(watched, error),
    });
    this.store = store;
    this.kept = new KeptOrders({ store, clock, records: deps.orders });
    this.desired = store;
    this.definition = definition;
    this.seen = createSeenObjects(definition, this.listeners, this.stopping.signal);
    const name = kind.controller;
    this.guard = new DeletionGuard(options.deletion, clock);
    this.statuses = new ObjectStatuses(clock, (outcome, count) =>
      metrics.troubledObjects.set({ controller: name, outcome }, count),
    );
    this.queue = this.createQueue();
    this.breaker = createReportBreaker(name, deps);
    this.reporter = this.createReporter();
    const lane = new SlowLane(backoffs.slow, deps);
    this.events = createEventRecorder(name, { ...deps, api });
    this.repairs = new LastRepairs({ clock, find: (key) => store.get(key) });
    const { guard, events, repairs } = this;
    const actions = new ActionRecords({ controller: name, api, log, events, repairs });
    const contests = new Contests({ controller: name, api, clock, log });
    const applied = { api, clock, lane, actions, contests, seal, drift: new DriftMemory() };
    const applier = new StepsApplier({ ...applied, onRepair: (repair) => countRepair(repair, name, deps) });
    const enqueue = this.queue.add.bind(this.queue);
    const shared = { controller: name, definition, store, guard, clock, log, metrics, enqueue, spans };
    this.seals = new SealInspector({ ...shared, applier, seal, isInformed: () => this.isInformed() });
    const looked = { ...shared, statuses: this.statuses, applier };
    this.reconciler = createReconciler({
      ...looked,
      cursor: this.cursor,
      actions,
      lane,
      keyPace: this.pace,
      contests,
      api,
      report: (key) => this.reporter.changed(key),
      settleOrder: (key, signal) => this.settleOrder(key, signal),
      isUnconfirmed: (key) => this.unconfirmed.has(key),
    });
    const questions = createQuestions(kind, options.rules, shared, controlPlane);
    this.unconfirmed = new UnconfirmedKeys({
      ...looked,
      ask: questions.ask,
      replay: () => this.stream.reconnectFromZero(replayOnceWithinMs),
    });
    this.resync = new Resync(
      { concurrency: questionsAtOnce },
      {
        ...shared,
        ...questions,
        isInSync: (key) => isInSync(key, looked),
        reconnects: () => this.stream.status().reconnects,
        position: () => this.cursor.position,
        replay: () => this.stream.reconnectFromZero(),
        forgotten: (key) => this.forget(key),
      },
    );
    this.stream = this.createStream();
    this.followIncarnations();
  }

  async start(signal?: AbortSignal): Promise<void> {
    if (this.running !== undefined) throw new Error(`controller ${this.kind.controller} is already started`);
    const { clock } = this.deps;
    const { watchedKinds } = this.definition;
    const unsubscribe = watchedKinds.map((kind) =>
      kind.subscribe(({ reconcile, report }) => {
        for (const key of reconcile) this.queue.add(key);
        for (const key of report) {
          this.reporter.changed(key);
          for (const listener of this.listeners) listener(key);
        }
      }),
    );
    const watches = watchedKinds.map((kind) =>
      this.keep(`watch ${kind.status().kind}`, (loopSignal) => kind.run(loopSignal)),
    );
    this.running = Promise.all(watches).finally(() => {
      for (const stop of unsubscribe) stop();
    });
    const linked =
      signal === undefined ? linkSignals(this.stopping.signal) : linkSignals(this.stopping.signal, signal);
    const { startTimeoutMs = 60_000 } = this.options;
    try {
      await whenWatching(this.kind.controller, watchedKinds, startTimeoutMs, clock, linked.signal);
      // Before the first resync, which must not ask the control plane about objects that a call ordered.
      await restoreOrders(this.takeOverParts(), startTimeoutMs, linked.signal);
    } catch (error) {
      await this.stop();
      throw error;
    } finally {
      linked.release();
    }
    this.running = Promise.all([this.running, ...this.startLoops()]);
  }

  stop(): Promise<void> {
    this.stopped ??= this.end();
    return this.stopped;
  }

  apply(message: ApplyOf<State>, signal: AbortSignal, readinessId?: string): Promise<OrderOutcome> {
    const { rules } = this.options;
    const versionOf = (key: string) => this.store.get(key)?.version ?? 0n;
    return this.order(() => readOrder(this.kind, { message, readinessId }, versionOf, rules), signal);
  }

  delete(message: DeleteOf<State>, signal: AbortSignal): Promise<OrderOutcome> {
    return this.order(() => ({ message: readDelete(this.kind, message, 0n, this.options.rules) }), signal);
  }

  private order(read: () => ReadOrder<Spec>, signal: AbortSignal): Promise<OrderOutcome> {
    const { kept, orders: waits, store, guard, queue } = this;
    return takeOrder(read, { kept, waits, store, guard, queue, stopping: this.stopping.signal }, signal);
  }

  status(): ControllerStatus {
    const { definition, queue, statuses, guard } = this;
    return controllerStatusMessage({
      name: this.kind.controller,
      stream: this.stream.status(),
      history: this.deps.controlPlane.history,
      cursor: this.cursor.version,
      settled: this.cursor.settled,
      queue: queue.counts,
      breaker: this.breaker.state,
      kinds: definition.watchedKinds.map((kind) => kind.status()),
      resync: this.lastResync,
      objects: this.objectCount.at(revisionOf(this.known()), () => countObjects(this.known())),
      parked: statuses.countOf("parked"),
      retrying: statuses.countOf("retrying"),
      conflicts: statuses.countOf("conflict"),
      blocked: guard.blockedCount,
      failing: this.failures().size,
      seals: this.seals.counts(),
      sealKeyId: this.deps.seal.keyId,
      originalPods: definition.originalPods?.() ?? 0,
      repairs: this.repairs.list(),
    });
  }

  failures(): ReadonlyMap<string, string> {
    return this.failing.at(revisionOf(this.known()), () => this.definition.failing());
  }

  liveObject(key: string): WatchedObject | undefined {
    return this.definition.liveObject?.(key);
  }

  mayHaveOriginalPods(): boolean {
    return this.definition.mayHaveOriginalPods?.() ?? false;
  }

  objects(filter: ObjectFilter = {}): ObjectStatus[] {
    return listObjects(this.known(), filter);
  }

  blockedDeletions(): BlockedDeletion[] {
    return this.guard.blocked().map((one) => blockedDeletionMessage(this.kind.controller, one));
  }

  releaseDeletion(key: string): boolean {
    const isReleased = this.guard.release(key);
    if (isReleased) this.queue.add(key);
    return isReleased;
  }

  private startLoops(): Promise<void>[] {
    const { resyncMs = 60_000, replayMs = 600_000 } = this.options;
    const { leadership = createSoleLeadership() } = this.deps;
    const loops = [
      this.keep("stream", (signal) => this.stream.run(signal)),
      this.keep("leader", (signal) => inEachTerm(leadership, (...term) => this.lead(...term), signal)),
    ];
    if (resyncMs > 0) loops.push(this.keep("resync", (signal) => this.runResync(resyncMs, signal)));
    if (replayMs > 0) loops.push(this.keep("replay", (signal) => this.stream.replayEvery(replayMs, signal)));
    return loops;
  }

  /** Writes and reports, until the term ends (K13). */
  private async lead({ number }: Term, term: AbortSignal): Promise<void> {
    const { startTimeoutMs = 60_000, workers } = this.options;
    if (number > 0) this.unconfirmed.begin();
    if (number > 0) await takeOver(this.takeOverParts(), startTimeoutMs, term);
    await Promise.all([
      this.keep("workers", (signal) => this.queue.run(workers, this.work.bind(this), signal), term),
      this.keep("reporter", (signal) => this.reporter.run(signal), term),
      this.keep("events", (signal) => this.events.run(signal), term),
    ]);
  }

  private keep(name: string, loop: Loop, until = this.stopping.signal): Promise<void> {
    const { clock, random } = this.deps;
    const onFailure = (_: string, error: unknown) => this.onBug(name, error);
    return supervise(name, loop, { clock, random, onFailure }, until);
  }

  private async end(): Promise<void> {
    this.stopping.abort();
    await this.running;
  }

  private async work(key: string, signal: AbortSignal): Promise<WorkOutcome> {
    const sequence = this.store.get(key)?.sequence ?? 0;
    const waitMs = this.pace.waitMs(key, sequence);
    if (waitMs > 0) return { kind: "again", afterMs: waitMs };
    if (!(await this.unconfirmed.confirm(key, signal))) return { kind: "retry", backoff: backoffs.retry };
    const outcome = await this.reconciler.reconcile(key, signal);
    this.orders.settle(key, sequence, this.statuses.get(key));
    const isUnsettled = outcome.kind === "done" && this.kept.isDue(key);
    return isUnsettled ? { kind: "retry", backoff: backoffs.slow } : outcome;
  }

  private takeOverParts(): TakeOverParts<Spec> {
    const { store, kept, queue, definition, guard, reporter } = this;
    return {
      ...{ store, kept, queue, definition, guard, reporter },
      read: (record) => restoreOrder(this.kind, record, this.options.rules),
      prepare: (key) => this.reconciler.prepare(key),
      replay: () => this.stream.reconnectFromZero(),
    };
  }

  private async settleOrder(key: string, signal: AbortSignal): Promise<void> {
    if (!this.kept.isDue(key)) return;
    try {
      await this.kept.settle(key, signal);
    } catch (error) {
      if (!this.kept.isInForce(key) || classifyFailure(error) === undefined) throw error;
      const { controller } = this.kind;
      this.deps.log.warn("the record of an order cannot be changed; retrying", { controller, key, error });
    }
  }

  private createQueue(): WorkQueue {
    const { clock, random, log } = this.deps;
    const { controller } = this.kind;
    return new WorkQueue(
      { backoff: backoffs.retry, groupOf: namespaceOf },
      {
        clock,
        random,
        onHandlerError: (key, error) => this.onBug(`reconcile ${key}`, error),
        onSlowGroup: slowNamespaceWarning(controller, log),
      },
    );
  }

  private createReporter(): Reporter {
    const { definition, store, breaker, kind } = this;
    const { clock, random, log } = this.deps;
    return new Reporter(
      { workers: reportsAtOnce },
      {
        clock,
        random,
        breaker,
        observe: (key) => definition.observe(key),
        isDeletionWanted: (key) => store.get(key)?.want.kind === "delete",
        isDeleted: (key) => this.statuses.get(key)?.outcome === "deleted",
        onError: (key, error) => this.onBug(`report ${key}`, error),
        onSent: reportEvents(kind.controller, log),
      },
    );
  }

  private createStream(): DesiredStream {
    const { kind, cursor, store, options } = this;
    const { controlPlane } = this.deps;
    return createDesiredStream(
      {
        controller: kind.controller,
        isAddition: kind.isAddition,
        open: (version, signal) => {
          store.opened();
          return controlPlane.watch(kind, version, signal);
        },
        cursor: () => cursor.version,
        resetCursor: () => resetCursor(controlPlane.history, this.stream.status(), { cursor, store }),
        onState: (state) => this.receive(readState(kind, state, options.rules)),
        onSign: () => this.reporter.retryMissed(),
      },
      this.deps,
    );
  }

  private followIncarnations(): void {
    const { deps, store, cursor, guard, reporter } = this;
    const { controller } = this.kind;
    followIncarnations(deps.controlPlane.history, {
      ...{ ...deps, controller, store, cursor, guard, reporter },
      replay: (afterMs) => this.stream.reconnectFromZero(afterMs),
      forgotten: (key) => this.forget(key),
      enqueue: (key) => this.queue.add(key),
    });
  }

  private receive(read: ReadState<Spec>): void {
    this.take(read);
    const version = read.kind === "bare" ? read.version : read.message.version;
    for (const key of this.store.reached(version)) this.queue.add(key);
  }

  private take(read: ReadState<Spec>): void {
    if (read.kind === "bare") {
      if (read.unreadable)
        this.deps.log.warn("skipped a message from a newer control plane that this krane cannot read", {
          controller: this.kind.controller,
          version: read.version,
        });
      this.cursor.pass(read.version);
      return;
    }
    const { message } = read;
    const { key } = message;
    const outcome = this.store.receive(message);
    this.cursor.receive(message.version, key);
    this.guard.clear(key);
    if (outcome !== "changed") return;
    this.reconciler.prepare(key);
    // The back-off belongs to the old state; the new one is tried at once.
    this.queue.forget(key);
    this.queue.add(key);
  }

  private isInformed(): boolean {
    return this.lastResync !== undefined && this.stream.status().state === "open";
  }

  private async runResync(everyMs: number, signal: AbortSignal): Promise<void> {
    const { clock } = this.deps;
    for (;;) {
      const startedMs = clock.nowMs();
      this.reporter.resendDue();
      // A control plane that is too old for the kind has none of its objects.
      const isSupported = this.stream.status().state !== "unsupported";
      if (isSupported) this.lastResync = await this.resync.pass(signal);
      this.seals.measure();
      await sleep(clock, Math.max(0, startedMs + everyMs - clock.nowMs()), signal);
    }
  }

  private known(): KnownObjects<Spec> {
    const { kind, definition, store, statuses } = this;
    return { controller: kind.controller, definition, store, statuses };
  }

  private forget(key: string): void {
    this.cursor.forget(key);
    this.statuses.forget(key);
    this.reconciler.forget(key);
    this.reporter.forget(key);
    this.pace.forget(key);
  }

  private onWatchError(kind: string, error: unknown): void {
    const { controller } = this.kind;
    this.deps.log.warn("watch failed; opening it again", { controller, kind, error });
  }

  private onBug(where: string, error: unknown): void {
    const controller = this.kind.controller;
    this.deps.metrics.internalPanics.inc({ caller: controller, path: "background" });
    this.deps.log.error("internal error; the loop continues", { controller, operation: where, error });
  }
}
