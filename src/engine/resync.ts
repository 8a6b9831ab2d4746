// The safety net: asks the control plane for every key, once a minute, one pass after the other.
//
// - Every key in the cluster and every key in the store is asked for, so an object whose row vanished is
//   suspected and one that was never made is remembered.
// - An answer goes into the store by the same rules as the stream. A question that fails says nothing; one
//   that fails by a bug of krane's ends the pass, and is not mistaken for a control plane that is down.
// - An answer that is the same as the last one, byte by byte, is not read again: it is what most of them are.
// - What the scheduler ordered is asked for only where the control plane has spoken of it as well, so that one
//   that was restored, and counts from lower numbers, is heard again. That it knows nothing of it says nothing.
// - A control plane that is down is not asked thousands of times: a pass gives up after a few failures.
import { isAbort, linkSignals } from "../concurrency/abort.ts";
import { type Clock, sleep } from "../concurrency/clock.ts";
import type { WorkPriority } from "../concurrency/work-queue.ts";
import type { DesiredAnswer, DesiredQuestion } from "../control-plane/connection.ts";
import { ControlPlaneError } from "../control-plane/error.ts";
import type { Log } from "../telemetry/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { ControllerDefinition } from "./controller-definition.ts";
import type { DeletionGuard } from "./deletion-guard.ts";
import type { ReadState } from "./desired-message.ts";
import type { DesiredEntry, DesiredStore } from "./desired-store.ts";
import type { ReconcileDeps } from "./reconcile.ts";

export interface ResyncOptions {
  /** Questions in flight at once. */
  readonly concurrency: number;
}

export interface ResyncDeps<Spec> {
  readonly definition: Pick<ControllerDefinition<Spec>, "managed" | "managedByKey" | "companionKeys">;
  /** The controller's name. */
  readonly controller: string;
  /** Asks the control plane for one object. */
  ask(question: DesiredQuestion, signal: AbortSignal): Promise<DesiredAnswer<ReadState<Spec>>>;
  readonly store: DesiredStore<Spec>;
  readonly guard: DeletionGuard;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Pick<Metrics, "resyncCorrections" | "resyncDuration">;
  /** Whether there is nothing to do about the key, as far as krane itself knows. */
  isInOrder(key: string): boolean;
  enqueue(key: string, priority: WorkPriority): void;
  /** The key has no memory left in the store. */
  forgotten(key: string): void;
}

export interface ResyncResult {
  readonly startedMs: number;
  readonly durationMs: number;
  readonly asked: number;
  readonly corrected: number;
}

interface Asked {
  readonly key: string;
  readonly id: string;
  /** There is an object in the cluster, which the control plane should know. */
  readonly isThere: boolean;
  readonly isScheduled: boolean;
}

interface Tally {
  present: number;
  answered: number;
  corrected: number;
  failuresInARow: number;
  lastFailure: unknown;
}

const failuresMax = 5;
const looksPerTurn = 256;

export class Resync<Spec> {
  private readonly options: ResyncOptions;
  private readonly deps: ResyncDeps<Spec>;
  private lastBlocked = 0;
  private hasPassed = false;

  constructor(options: ResyncOptions, deps: ResyncDeps<Spec>) {
    this.options = options;
    this.deps = deps;
  }

  async pass(signal: AbortSignal): Promise<ResyncResult> {
    const { clock, controller, metrics } = this.deps;
    const startedAtMs = clock.wallMs();
    const startedMs = clock.nowMs();
    const questions = this.questions();
    const tally: Tally = { present: 0, answered: 0, corrected: 0, failuresInARow: 0, lastFailure: undefined };
    const waiting = questions.values();
    const linked = linkSignals(signal);
    const workers = Array.from({ length: this.options.concurrency }, () =>
      this.work(waiting, tally, linked.signal),
    );
    try {
      await Promise.all(workers);
    } finally {
      // Where one has failed, the others end before the pass does.
      linked.abort();
      await Promise.allSettled(workers);
    }
    signal.throwIfAborted();
    this.hasPassed = true;
    this.judge(questions, tally);
    await this.enqueueTheRest(signal);
    const durationMs = clock.nowMs() - startedMs;
    metrics.resyncDuration.observe({ controller }, durationMs / 1_000);
    metrics.resyncCorrections.inc({ controller }, tally.corrected);
    return { startedMs: startedAtMs, durationMs, asked: tally.answered, corrected: tally.corrected };
  }

  /** What is in order needs no worker. Thousands of looks in one turn would hold up everybody else's. */
  private async enqueueTheRest(signal: AbortSignal): Promise<void> {
    const { clock, isInOrder, enqueue } = this.deps;
    for (const [index, key] of [...this.everyKey()].entries()) {
      if (index % looksPerTurn === looksPerTurn - 1) await sleep(clock, 0, signal);
      if (!isInOrder(key)) enqueue(key, "resync");
    }
  }

  private questions(): readonly Asked[] {
    const { definition, store } = this.deps;
    const asked = new Map<string, Asked>();
    const add = (key: string, entry: DesiredEntry<Spec> | undefined, isLive: boolean, id = entry?.id) => {
      // What is being deleted needs no second opinion.
      if (id === undefined || entry?.want.kind === "delete" || asked.has(key)) return;
      const isScheduled = entry?.origin === "scheduler";
      if (isScheduled && entry.version === 0n) return;
      asked.set(key, { key, id, isThere: isLive && !isScheduled, isScheduled });
    };
    for (const { key, id, isOrdered = false } of definition.managed()) {
      const entry = store.get(key);
      if (entry !== undefined || !isOrdered) add(key, entry, true, entry?.id ?? id);
    }
    for (const entry of store.entries()) add(entry.key, entry, false);
    return [...asked.values()];
  }

  private async work(questions: Iterator<Asked>, tally: Tally, signal: AbortSignal): Promise<void> {
    while (!signal.aborted && tally.failuresInARow < failuresMax) {
      const next = questions.next();
      if (next.done === true) return;
      await this.ask(next.value, tally, signal);
    }
  }

  private async ask(
    { key, id, isThere, isScheduled }: Asked,
    tally: Tally,
    signal: AbortSignal,
  ): Promise<void> {
    const { store, guard, enqueue } = this.deps;
    const question = store.ask(key);
    // At the start an answer may overtake the stream, which it then does not correct.
    const isCorrection = this.hasPassed || store.get(key) !== undefined;
    const answer = await this.answer({ id, knownPrint: question.knownPrint }, tally, signal);
    if (answer === undefined) return;
    tally.answered += 1;
    if (answer.kind === "not-found") {
      // The stream may have brought it while the question was on its way.
      if (!isScheduled && store.ask(key).sequence === question.sequence) guard.suspect(key, id);
      return;
    }
    const isKnown = () => {
      if (isThere) tally.present += 1;
      guard.clear(key);
    };
    if (answer.kind === "same") return isKnown();
    const read = answer.state;
    if (read.kind === "bare") return;
    isKnown();
    if (store.answer(question, read.message, answer.print) !== "changed") return;
    if (isCorrection) tally.corrected += 1;
    enqueue(read.message.key, "fresh");
  }

  private async answer(question: DesiredQuestion, tally: Tally, signal: AbortSignal) {
    try {
      const answer = await this.deps.ask(question, signal);
      tally.failuresInARow = 0;
      return answer;
    } catch (error) {
      if (isAbort(error, signal)) return undefined;
      if (!(error instanceof ControlPlaneError)) throw error;
      tally.failuresInARow += 1;
      tally.lastFailure = error;
      return undefined;
    }
  }

  private judge(questions: readonly Asked[], tally: Tally): void {
    const { definition, controller, store, guard, log, enqueue } = this.deps;
    const managed = questions.filter(({ isThere }) => isThere).length;
    for (const key of guard.endPass({ managed, present: tally.present })) enqueue(key, "resync");
    for (const key of store.sweep((one) => definition.managedByKey(one) !== undefined))
      this.deps.forgotten(key);
    if (tally.failuresInARow >= failuresMax) {
      log.warn("resync gave up for now", { controller, error: tally.lastFailure });
    }
    const blocked = guard.blocked();
    if (blocked.length !== this.lastBlocked && blocked.length > 0) {
      log.error("the control plane does not know objects that are running; they are kept", {
        controller,
        count: blocked.length,
        reason: blocked[0]?.reason,
        remedy: "check region and control plane, or release the deletions one by one",
      });
    }
    this.lastBlocked = blocked.length;
  }

  private *everyKey(): IterableIterator<string> {
    const { definition, store } = this.deps;
    const isWanted = (entry: DesiredEntry<Spec> | undefined) =>
      entry !== undefined && entry.want.kind !== "delete";
    for (const { key } of definition.managed()) if (!isWanted(store.get(key))) yield key;
    for (const entry of store.entries()) if (isWanted(entry)) yield entry.key;
    yield* definition.companionKeys();
  }
}

// Whether a look at a key would find nothing to do and nothing to tell. It is as thorough as that look; but once a
// minute it is made for every key, and almost always without need of the rest.

type InOrderDeps<Spec> = Pick<ReconcileDeps<Spec>, "store" | "definition" | "guard" | "applier" | "statuses">;

/** False also for a key that cannot be looked at: its worker tells of that. */
export function isInOrder<Spec>(key: string, deps: InOrderDeps<Spec>): boolean {
  try {
    return isSettled(key, deps);
  } catch {
    return false;
  }
}

function isSettled<Spec>(
  key: string,
  { store, definition, guard, applier, statuses }: InOrderDeps<Spec>,
): boolean {
  const entry = store.get(key);
  const record = statuses.get(key);
  if (entry?.want.kind !== "apply" || guard.isSuspected(key)) return false;
  if (record?.outcome !== "unchanged" || record.appliedVersion !== entry.version) return false;
  const plan = definition.plan(key, entry);
  return plan.kind === "apply" && applier.isDone(plan.steps);
}
