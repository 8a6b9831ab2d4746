// The resync, a safety net: compares every key with the control plane, one pass per minute.
//
// - With a control plane that has digests, it compares those and asks only for keys that differ (digest-comparison.ts). If
//   the control plane has none, or comparing fails, it asks for every key.
// - It compares every key in the cluster and every key in the store. So an object that the control plane lost is
//   noticed (as a suspicion), and so is one that was never created.
// - What a list names beyond the stream's position is left to the stream as long as that moves. While it brings thousands of
//   objects, every one of them differs.
// - A response goes into the store by the same rules as a message of the stream. A failed request means nothing. A bug
//   ends the pass, so it is not mistaken for a control plane that is down.
// - A response that equals the last one byte for byte, as most do, is not parsed again.
// - An object that the scheduler ordered is asked for only if the control plane has sent a version of it too, so that
//   a restored control plane with lower versions is followed. If it does not know such an object, that means nothing.
// - A deleted key is asked for only after the stream was opened again, because only then may the control plane have been
//   restored from a backup, or if the stream sends an older state of it. If it sends a state, the stream is replayed, which shows
//   whether the Delete was lost.
// - After a few failures in a row, a pass asks for an object that was answered before. If that fails too, the control
//   plane is down, and the pass ends instead of sending thousands of requests. If it does not, only those objects are
//   broken. They are asked for last in the next pass, so they never keep the others from being asked for.
import type { DescMessage } from "@bufbuild/protobuf";
import { isAbort, linkSignals } from "../concurrency/abort.ts";
import { type Clock, sleep } from "../concurrency/clock.ts";
import type { WorkPriority } from "../concurrency/work-queue.ts";
import type { ControlPlane, DesiredRequest, DesiredResponse } from "../control-plane/connection.ts";
import { ControlPlaneError } from "../control-plane/error.ts";
import type { MessageRules } from "../model/message-fields.ts";
import type { Log } from "../telemetry/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { classifyFailure } from "./classify.ts";
import type { ControllerDefinition } from "./controller-definition.ts";
import type { DeletionGuard } from "./deletion-guard.ts";
import { type ReadState, readState } from "./desired-message.ts";
import type { DesiredEntry, DesiredStore } from "./desired-store.ts";
import { DigestComparison, type DigestComparisonDeps, type DigestSource } from "./digest-comparison.ts";
import type { EngineKind, OrderedSpec } from "./engine-kind.ts";
import type { ReconcileDeps } from "./reconcile.ts";

export interface ResyncOptions {
  /** Requests in flight at once. */
  readonly concurrency: number;
}

export interface ResyncDeps<Spec> {
  readonly definition: Pick<
    ControllerDefinition<Spec>,
    "managed" | "managedByKey" | "companionKeys" | "findStrays"
  >;
  /** The controller's name. */
  readonly controller: string;
  /** Asks the control plane for one object. */
  ask(question: DesiredRequest, signal: AbortSignal): Promise<DesiredResponse<ReadState<Spec>>>;
  /** Absent if nothing is compared by digests. */
  readonly comparison?: Pick<DigestComparison<Spec>, "compare">;
  readonly store: DesiredStore<Spec>;
  readonly guard: DeletionGuard;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Pick<Metrics, "resyncCorrections" | "resyncDuration">;
  /** Whether the key needs no work, as far as the store and the caches show. */
  isInSync(key: string): boolean;
  /** How often the stream was opened again after it had ended. */
  reconnects(): number;
  /** The version that the stream has reached. */
  position(): bigint;
  /** Reads the stream again from version 0. */
  replay(): void;
  enqueue(key: string, priority: WorkPriority): void;
  /** The store has dropped the key. */
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
  /** The object is in the cluster and krane's, and the control plane should know it. */
  readonly isManaged: boolean;
  readonly isDeleted: boolean;
  /** A `not_found` is a suspicion (K5). If the control plane has digests, that takes a list without the object. */
  readonly mayBeAbsent: boolean;
  /** The stream was here when a list named a later version of it; absent otherwise. */
  readonly behind?: bigint;
}

interface Tally {
  present: number;
  answered: number;
  corrected: number;
  failuresInARow: number;
  lastFailure: unknown;
  /** The keys whose last request failed, in this pass or an earlier one. */
  readonly failed: Set<string>;
  /** Whether the control plane still answers; asked once, however many workers wait for it. */
  probe: Promise<boolean> | undefined;
  isDown: boolean;
  needsReplay: boolean;
}

interface Compared {
  /** What is left to ask for. */
  readonly questions: readonly Asked[];
  /** The control plane has them as they are known here. */
  readonly confirmed: readonly Asked[];
}

const failuresMax = 5;
const checksPerTurn = 256;

export class Resync<Spec> {
  private readonly options: ResyncOptions;
  private readonly deps: ResyncDeps<Spec>;
  private lastBlocked = 0;
  private hasPassed = false;
  /** The connections of the stream up to which every deleted key was asked for. */
  private reconnects = 0;
  /** The keys whose last request failed. */
  private failed: ReadonlySet<string> = new Set();
  /** An object that the control plane answered about. */
  private answered: Asked | undefined;

  constructor(options: ResyncOptions, deps: ResyncDeps<Spec>) {
    this.options = options;
    this.deps = deps;
  }

  async pass(signal: AbortSignal): Promise<ResyncResult> {
    const { clock, controller, metrics } = this.deps;
    await this.findStrays(signal);
    const startedAtMs = clock.wallMs();
    const startedMs = clock.nowMs();
    const reconnects = this.deps.reconnects();
    const every = this.questions(reconnects !== this.reconnects);
    const { questions, confirmed } = await this.compare(every, signal);
    const tally: Tally = {
      present: 0,
      answered: 0,
      corrected: 0,
      failuresInARow: 0,
      lastFailure: undefined,
      failed: new Set(questions.flatMap(({ key }) => (this.failed.has(key) ? [key] : []))),
      probe: undefined,
      isDown: false,
      needsReplay: false,
    };
    this.takeConfirmed(confirmed, tally);
    const waiting = questions.values();
    const linked = linkSignals(signal);
    // Known to work from an earlier request; else as far away as possible from the first ones.
    const probed = this.answered ?? questions.findLast(({ key }) => !this.failed.has(key));
    const workers = Array.from({ length: this.options.concurrency }, () =>
      this.work(waiting, tally, probed, linked.signal),
    );
    try {
      await Promise.all(workers);
    } finally {
      // If one worker failed, the others end before the pass does.
      linked.abort();
      await Promise.allSettled(workers);
    }
    signal.throwIfAborted();
    this.hasPassed = true;
    this.failed = tally.failed;
    const isComplete = !questions.some(({ key, isDeleted }) => isDeleted && tally.failed.has(key));
    if (isComplete && !tally.isDown) this.reconnects = reconnects;
    if (tally.needsReplay) this.deps.replay();
    this.judge([...questions, ...confirmed], tally);
    await this.enqueueOutOfSync(signal);
    const durationMs = clock.nowMs() - startedMs;
    metrics.resyncDuration.observe({ controller }, durationMs / 1_000);
    metrics.resyncCorrections.inc({ controller }, tally.corrected);
    return { startedMs: startedAtMs, durationMs, asked: tally.answered, corrected: tally.corrected };
  }

  private async compare(every: readonly Asked[], signal: AbortSignal): Promise<Compared> {
    // A control plane with digests names its incarnation, and never loses a Delete without starting a new one.
    const objects = every.filter(({ isDeleted }) => !isDeleted);
    const position = this.deps.position();
    try {
      const found = await this.deps.comparison?.compare(objects, signal);
      if (found === undefined) return { questions: every, confirmed: [] };
      const others = objects
        .filter(({ key }) => !found.confirmed.has(key))
        .map((one) => ({ ...one, mayBeAbsent: one.mayBeAbsent && found.absent.has(one.key) }));
      const differing = [...others, ...this.unknownOf(found.listed, objects)];
      const isAhead = ({ id }: Asked) => (found.listed.get(id) ?? 0n) > position;
      return {
        questions: differing.map((one) => (isAhead(one) ? { ...one, behind: position } : one)),
        confirmed: objects.filter(({ key }) => found.confirmed.has(key)),
      };
    } catch (error) {
      if (isAbort(error, signal) || !(error instanceof ControlPlaneError)) throw error;
      if (error.code === "unimplemented") return { questions: every, confirmed: [] };
      const { controller, log } = this.deps;
      log.warn("comparing digests failed; requesting every object", { controller, error });
      return { questions: every.map((one) => ({ ...one, mayBeAbsent: false })), confirmed: [] };
    }
  }

  /** Listed objects that nothing here is known of. In the first pass, the stream is about to bring them. */
  private unknownOf(listed: ReadonlyMap<string, bigint>, objects: readonly Asked[]): readonly Asked[] {
    if (!this.hasPassed) return [];
    const ids = new Set(objects.map(({ id }) => id));
    const unknown = [...listed.keys()].filter((id) => !ids.has(id));
    if (unknown.length === 0) return [];
    const entries = new Map([...this.deps.store.entries()].map((entry) => [entry.id, entry]));
    return unknown.map((id) => {
      const entry = entries.get(id);
      const key = entry?.key ?? `listed:${id}`;
      const isDeleted = entry?.want.kind === "delete";
      return { key, id, isManaged: false, isDeleted, mayBeAbsent: false };
    });
  }

  private takeConfirmed(confirmed: readonly Asked[], tally: Tally): void {
    for (const asked of confirmed) {
      if (asked.isManaged) tally.present += 1;
      this.deps.guard.clear(asked.key);
    }
    tally.answered += confirmed.length;
  }

  private async findStrays(signal: AbortSignal): Promise<void> {
    const { definition, controller, log } = this.deps;
    await definition.findStrays?.(signal).catch((error: unknown) => {
      if (isAbort(error, signal) || classifyFailure(error) === undefined) throw error;
      log.debug("could not look for objects without labels; retrying", { controller, error });
    });
  }

  /** Enqueues the keys that are out of sync. It yields in between: thousands of checks would block the event loop. */
  private async enqueueOutOfSync(signal: AbortSignal): Promise<void> {
    const { clock, isInSync, enqueue } = this.deps;
    for (const [index, key] of [...this.everyKey()].entries()) {
      if (index % checksPerTurn === checksPerTurn - 1) await sleep(clock, 0, signal);
      if (!isInSync(key)) enqueue(key, "resync");
    }
  }

  private questions(withDeleted: boolean): readonly Asked[] {
    const { definition, store } = this.deps;
    const asked = new Map<string, Asked>();
    const add = (key: string, entry: DesiredEntry<Spec> | undefined, isProven: boolean, id = entry?.id) => {
      if (id === undefined || asked.has(key)) return;
      const isScheduled = entry?.origin === "scheduler";
      if (isScheduled && entry.version === 0n) return;
      const isDeleted = entry?.want.kind === "delete";
      const isContradicted = store.isDoubted(key) || store.contradictions(key) > 0;
      const isDoubtful = !isScheduled && (withDeleted || isContradicted);
      // A wanted deletion needs no confirmation.
      if (isDeleted && !isDoubtful) return;
      const mayBeAbsent = !isScheduled && !isDeleted;
      asked.set(key, { key, id, isManaged: isProven && mayBeAbsent, isDeleted, mayBeAbsent });
    };
    for (const { key, id, isProven = true } of definition.managed()) {
      const entry = store.get(key);
      add(key, entry, isProven, entry?.id ?? id);
    }
    for (const entry of store.entries()) add(entry.key, entry, false);
    const all = [...asked.values()];
    if (this.failed.size === 0) return all;
    const hasFailed = ({ key }: Asked) => this.failed.has(key);
    return [...all.filter((one) => !hasFailed(one)), ...all.filter(hasFailed)];
  }

  private async work(
    questions: Iterator<Asked>,
    tally: Tally,
    probed: Asked | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    while (!signal.aborted && !tally.isDown) {
      if (tally.failuresInARow >= failuresMax) {
        tally.probe ??= this.probe(tally, this.answered ?? probed, signal);
        if (!(await tally.probe)) return;
        continue;
      }
      const next = questions.next();
      if (next.done === true) return;
      await this.ask(next.value, tally, signal);
    }
  }

  /** Whether the control plane still answers about an object other than those that failed. */
  private async probe(tally: Tally, probed: Asked | undefined, signal: AbortSignal): Promise<boolean> {
    const answer = probed && (await this.answer(probed.key, { id: probed.id }, tally, signal));
    tally.isDown = answer === undefined;
    tally.probe = undefined;
    return !tally.isDown;
  }

  private async ask(asked: Asked, tally: Tally, signal: AbortSignal): Promise<void> {
    const { store, guard, enqueue } = this.deps;
    const { key, id, isManaged, mayBeAbsent, behind } = asked;
    if (behind !== undefined && behind !== this.deps.position()) return;
    const question = store.ask(key);
    // In the first pass a response may simply be faster than the stream, which is not a correction.
    const isCorrection = this.hasPassed || store.get(key) !== undefined;
    const { knownFingerprint, knownVersion } = question;
    const answer = await this.answer(key, { id, knownFingerprint, knownVersion }, tally, signal);
    if (answer === undefined) return;
    tally.answered += 1;
    this.answered = asked;
    if (answer.kind === "not-found") {
      // Unless the stream brought the key while the request was in flight.
      if (mayBeAbsent && store.ask(key).sequence === question.sequence) guard.suspect(key, id);
      return;
    }
    const isKnown = () => {
      if (isManaged) tally.present += 1;
      guard.clear(key);
    };
    if (answer.kind === "same") return isKnown();
    const read = answer.state;
    if (read.kind === "bare") return;
    isKnown();
    const outcome = store.answer(question, read.message, answer.fingerprint);
    // Once per Delete: if the stream repeats the Delete, later responses are ignored.
    if (store.contradictions(key) === 1) tally.needsReplay = true;
    if (outcome !== "changed") return;
    if (isCorrection) tally.corrected += 1;
    enqueue(read.message.key, "fresh");
  }

  private async answer(key: string, question: DesiredRequest, tally: Tally, signal: AbortSignal) {
    try {
      const answer = await this.deps.ask(question, signal);
      tally.failuresInARow = 0;
      tally.failed.delete(key);
      return answer;
    } catch (error) {
      if (isAbort(error, signal)) return undefined;
      if (!(error instanceof ControlPlaneError)) throw error;
      tally.failuresInARow += 1;
      tally.lastFailure = error;
      tally.failed.add(key);
      return undefined;
    }
  }

  private judge(questions: readonly Asked[], tally: Tally): void {
    const { definition, controller, store, guard, log, enqueue } = this.deps;
    const managed = questions.filter(({ isManaged }) => isManaged).length;
    for (const key of guard.endPass({ managed, present: tally.present })) enqueue(key, "resync");
    for (const key of store.sweep((one) => definition.managedByKey(one) !== undefined))
      this.deps.forgotten(key);
    if (tally.isDown) {
      log.warn("resync pass stopped after too many failures", { controller, error: tally.lastFailure });
    } else if (tally.failed.size > 0) {
      log.warn("the control plane did not send some objects; the last applied state stays in force", {
        controller,
        count: tally.failed.size,
        error: tally.lastFailure,
      });
    }
    const blocked = guard.blocked();
    if (blocked.length !== this.lastBlocked && blocked.length > 0) {
      log.error("the control plane does not know objects that are running; holding back their deletion", {
        controller,
        count: blocked.length,
        reason: blocked[0]?.reason,
        remedy:
          "check the region and the control plane, or allow each deletion with `krane deletions release`",
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

/** How a controller asks its control plane, about one object or all of them. */
export function createQuestions<State extends DescMessage, Spec extends OrderedSpec>(
  kind: EngineKind<State, Spec>,
  rules: MessageRules,
  deps: Omit<DigestComparisonDeps<Spec>, "source">,
  controlPlane: Pick<ControlPlane, "get" | "digest" | "contents" | "history">,
): Pick<ResyncDeps<Spec>, "ask" | "comparison"> {
  const source: DigestSource = {
    async digest(sum, signal) {
      const digest = await controlPlane.digest(kind, sum, signal);
      // Without an incarnation, equal versions may be of different histories.
      return controlPlane.history.isNamed ? digest : undefined;
    },
    contents: (buckets, signal) => controlPlane.contents(kind, buckets, signal),
  };
  return {
    async ask(question, signal) {
      const answer = await controlPlane.get(kind, question, signal);
      if (answer.kind !== "found") return answer;
      return { ...answer, state: readState(kind, answer.state, rules) };
    },
    comparison: new DigestComparison({ ...deps, source }),
  };
}

type InSyncDeps<Spec> = Pick<ReconcileDeps<Spec>, "store" | "definition" | "guard" | "applier" | "statuses">;

/**
 * Whether reconciling the key would do nothing and report nothing. It checks the same things as a reconcile, without
 * the cost of one, because the resync calls it for every key once a minute. A key that cannot be checked counts as out
 * of sync, so that its worker reports the error.
 */
export function isInSync<Spec>(key: string, deps: InSyncDeps<Spec>): boolean {
  try {
    return isSettled(key, deps);
  } catch {
    return false;
  }
}

function isSettled<Spec>(
  key: string,
  { store, definition, guard, applier, statuses }: InSyncDeps<Spec>,
): boolean {
  const entry = store.get(key);
  const record = statuses.get(key);
  if (entry?.want.kind !== "apply" || guard.isSuspected(key)) return false;
  if (record?.outcome !== "unchanged" || record.appliedVersion !== entry.version) return false;
  const plan = definition.plan(key, entry);
  return plan.kind === "apply" && !plan.leftovers?.length && applier.isDone(plan.steps);
}
