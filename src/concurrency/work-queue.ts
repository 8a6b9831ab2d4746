// A queue of keys that need work, and the workers that handle them (K1).
//
// - One key, one worker. A key that is added while in flight is handled once more afterwards, however often it was added,
//   so every add is followed by a handling that started after it.
// - The queue holds keys, never events, and each key once: memory is bounded by the number of objects, not by the rate of
//   changes.
// - Fresh keys go before resync keys, but never so long that resync starves. Keys of one group never take all workers
//   (see fair-share.ts).
// - A failing key backs off alone; the others are not affected.
// - Taking a key and giving it back are not in the interface: run() does both, so no worker can forget a key or handle one
//   that is not its own.
//
// Every operation is O(1), or O(log n) in the number of delayed keys. There is one timer for the earliest delayed key, and
// there are timers only while run() lasts.
import { isAbort } from "./abort.ts";
import { onAbort } from "./abort-listener.ts";
import { type BackoffOptions, backoffDelayMs, checkBackoff } from "./backoff.ts";
import type { Clock, Timer } from "./clock.ts";
import { DueHeap, type DueItem } from "./due-heap.ts";
import { type FairItem, FairShare, type WorkPriority } from "./fair-share.ts";
import { notify } from "./notify.ts";
import type { Random } from "./random.ts";

export type { WorkPriority };

/** The result of handling a key; a handler that throws counts as "retry". */
export type WorkOutcome =
  /** Up to date; its failures are forgotten. */
  | { readonly kind: "done" }
  /** Failed: handled again after a back-off, and no earlier than `atLeastMs` (a server's Retry-After). */
  | { readonly kind: "retry"; readonly atLeastMs?: number; readonly backoff?: BackoffOptions }
  /** Not a failure, but handled again after this long, for example when an object has to be older first. */
  | { readonly kind: "again"; readonly afterMs: number };

export type WorkHandler<Key> = (key: Key, signal: AbortSignal) => Promise<WorkOutcome>;

export interface WorkQueueOptions {
  /** For a failing key, unless the outcome has its own. */
  readonly backoff: BackoffOptions;
  /** After this many fresh keys in a row, one resync key is handled. Default 8. */
  readonly freshBurst?: number;
  /** The group that shares workers with the key. Default: all keys are in one group, which may use every worker. */
  readonly groupOf?: (key: string) => string;
  /** A group of which one key takes this long is slow, and gets fewer workers. Default 2 s. */
  readonly slowMs?: number;
}

export interface WorkQueueDeps<Key> {
  readonly clock: Clock;
  readonly random: Random;
  /** Called when a handler throws, unless the signal was the cause. Its own errors are ignored. */
  onHandlerError(key: Key, error: unknown): void;
  /** Called when a group becomes slow, at most once a minute. Its own errors are ignored. */
  onSlowGroup?(group: string): void;
}

export interface WorkQueueCounts {
  readonly waiting: Readonly<Record<WorkPriority, number>>;
  readonly delayed: number;
  readonly inFlight: number;
  /** How long the oldest waiting key has been ready; 0 if none waits. A promoted key counts from its promotion. */
  readonly oldestWaitingMs: number;
}

// Keys that need no request, such as those of a replay without changes, are handled without yielding. After this many the
// queue yields to the event loop, or a flood would delay every other loop, timer and health probe.
const startsPerTurn = 256;

interface Wish {
  readonly dueMs: number;
  readonly priority: WorkPriority;
}

interface Entry<Key> extends DueItem, FairItem<Entry<Key>> {
  readonly key: Key;
  place: "waiting" | "delayed" | "in-flight";
  priority: WorkPriority;
  /** Failures in a row. A delayed key with failures is in back-off. */
  failures: number;
  /** The adds that came while in flight, merged into one. */
  next: Wish | undefined;
}

interface Run<Key> {
  readonly workers: number;
  readonly handler: WorkHandler<Key>;
  readonly signal: AbortSignal;
  readonly finish: () => void;
  inFlight: number;
}

export class WorkQueue<Key extends string = string> {
  private readonly backoff: BackoffOptions;
  private readonly options: WorkQueueOptions;
  private readonly deps: WorkQueueDeps<Key>;
  private readonly entries = new Map<Key, Entry<Key>>();
  private waiting: FairShare<Entry<Key>>;
  private delayed = new DueHeap<Entry<Key>>();
  private current: Run<Key> | undefined;
  private dispatchIsPending = false;
  private alarm: { readonly dueMs: number; readonly timer: Timer } | undefined;
  private startsThisTurn = 0;
  private pause: Timer | undefined;
  private closed = false;

  constructor(options: WorkQueueOptions, deps: WorkQueueDeps<Key>) {
    checkBackoff(options.backoff);
    this.backoff = options.backoff;
    this.options = options;
    this.deps = deps;
    this.waiting = this.createWaiting();
  }

  /**
   * The key needs work now. A higher priority moves a waiting key up; a lower one never moves it down. A key in back-off
   * is handled at once if the add is fresh, because its new desired state may succeed. A resync leaves it in back-off, or
   * it would undo every back-off once a minute. The failures are kept either way, so a key that changes and fails all the
   * time does not start its back-off over; a caller that wants that calls forget() first.
   */
  add(key: Key, priority: WorkPriority = "fresh"): void {
    this.want(key, { dueMs: this.deps.clock.nowMs(), priority });
  }

  /**
   * The key needs work, but not before the delay is over. An earlier add replaces this one: a handler that still needs a
   * later run must ask for it.
   */
  addAfter(key: Key, delayMs: number, priority: WorkPriority = "fresh"): void {
    this.want(key, { dueMs: this.dueAfter(delayMs), priority });
  }

  /** Resets the key's back-off. Does not enqueue it. */
  forget(key: Key): void {
    const entry = this.entries.get(key);
    if (entry) entry.failures = 0;
  }

  get counts(): WorkQueueCounts {
    const { waiting } = this;
    const nowMs = this.deps.clock.nowMs();
    return {
      waiting: { fresh: waiting.size("fresh"), resync: waiting.size("resync") },
      delayed: this.delayed.size,
      inFlight: this.current?.inFlight ?? 0,
      oldestWaitingMs: nowMs - (waiting.oldestMs ?? nowMs),
    };
  }

  /**
   * Handles keys, `workers` at a time, until the signal aborts or the queue is closed; resolves when the handlers in
   * flight have ended too. Remaining keys, and those whose handler was aborted, are kept for a later run.
   */
  async run(workers: number, handler: WorkHandler<Key>, signal: AbortSignal): Promise<void> {
    if (this.current) throw new Error("the work queue is already running");
    if (!Number.isInteger(workers) || workers < 1)
      throw new RangeError(`workers must be 1 or more: ${workers}`);
    this.waiting.setWorkers(workers);
    const stopListening = onAbort(signal, () => this.dispatch());
    await new Promise<void>((finish) => {
      this.current = { workers, handler, signal, finish, inFlight: 0 };
      this.dispatch();
    });
    stopListening();
  }

  /** Drops every key. Nothing more is started, and further adds are ignored. */
  close(): void {
    this.closed = true;
    this.entries.clear();
    this.waiting = this.createWaiting();
    this.delayed = new DueHeap();
    this.dispatch();
  }

  private createWaiting(): FairShare<Entry<Key>> {
    const { groupOf, freshBurst = 8, slowMs = 2_000 } = this.options;
    const { clock } = this.deps;
    return new FairShare({
      freshBurst,
      isGrouped: groupOf !== undefined,
      slowMs,
      nowMs: () => clock.nowMs(),
      onSlow: (group) => notify(() => this.deps.onSlowGroup?.(group)),
    });
  }

  private want(key: Key, wish: Wish): void {
    if (this.closed) return;
    const entry = this.entries.get(key);
    if (entry === undefined) {
      const created = createEntry(key, this.options.groupOf?.(key) ?? "");
      this.entries.set(key, created);
      this.place(created, wish);
    } else if (entry.place === "in-flight") {
      entry.next = merged(entry.next, wish);
    } else if (entry.place === "delayed") {
      const respectsBackoff = entry.failures > 0 && wish.priority === "resync";
      if (respectsBackoff) return;
      this.delayed.remove(entry);
      this.place(entry, merged(entry, wish));
    } else if (entry.priority === "resync" && wish.priority === "fresh" && this.isDue(wish)) {
      this.waiting.remove(entry);
      this.place(entry, wish);
    }
  }

  private place(entry: Entry<Key>, { dueMs, priority }: Wish): void {
    entry.dueMs = dueMs;
    entry.priority = priority;
    if (this.isDue(entry)) {
      entry.place = "waiting";
      entry.waitingSinceMs = this.deps.clock.nowMs();
      this.waiting.push(entry);
    } else {
      entry.place = "delayed";
      this.delayed.push(entry);
    }
    this.dispatchSoon();
  }

  // Deferred, so that of several keys added together the most urgent is first, and so that no handler runs inside add().
  private dispatchSoon(): void {
    if (this.dispatchIsPending || !this.current) return;
    this.dispatchIsPending = true;
    queueMicrotask(() => {
      this.dispatchIsPending = false;
      this.dispatch();
    });
  }

  private dispatch(): void {
    const run = this.current;
    if (!run) return;
    if (this.closed || run.signal.aborted) {
      this.setAlarm(undefined);
      this.endPause();
      if (run.inFlight > 0) return;
      this.current = undefined;
      run.finish();
      return;
    }
    this.wakeDelayed();
    while (run.inFlight < run.workers && !this.pause) {
      const entry = this.waiting.start();
      if (!entry) break;
      entry.place = "in-flight";
      run.inFlight += 1;
      void this.handle(entry, run);
      if (++this.startsThisTurn >= startsPerTurn) this.startPause();
    }
    this.setAlarm(this.delayed.first?.dueMs);
  }

  private wakeDelayed(): void {
    for (let entry = this.delayed.first; entry && this.isDue(entry); entry = this.delayed.first) {
      this.delayed.remove(entry);
      this.place(entry, entry);
    }
  }

  private async handle(entry: Entry<Key>, run: Run<Key>): Promise<void> {
    let wish: Wish | undefined;
    let isDone = false;
    try {
      const outcome = await run.handler(entry.key, run.signal);
      isDone = outcome.kind === "done";
      wish = this.wishAfter(entry, outcome);
    } catch (error) {
      if (isAbort(error, run.signal)) {
        wish = merged(entry.next, { dueMs: this.deps.clock.nowMs(), priority: entry.priority });
      } else {
        wish = this.wishAfter(entry, { kind: "retry" });
        notify(() => this.deps.onHandlerError(entry.key, error));
      }
    }
    entry.next = undefined;
    run.inFlight -= 1;
    if (!this.closed) this.waiting.ended(entry, isDone);
    if (this.closed || !wish) this.entries.delete(entry.key);
    else this.place(entry, wish);
    this.dispatchSoon();
  }

  /** When the key is handled again after this outcome, if at all. */
  private wishAfter(entry: Entry<Key>, outcome: WorkOutcome): Wish | undefined {
    const { next, priority } = entry;
    switch (outcome.kind) {
      case "done":
        entry.failures = 0;
        return next;
      case "again": {
        const dueMs = this.dueAfter(outcome.afterMs);
        entry.failures = 0;
        return merged(next, { dueMs, priority });
      }
      case "retry": {
        const backoffMs = backoffDelayMs(outcome.backoff ?? this.backoff, entry.failures, this.deps.random);
        const dueMs = this.dueAfter(Math.max(backoffMs, outcome.atLeastMs ?? 0));
        entry.failures += 1;
        // As in want(): a fresh change does not wait for the back-off, a resync does.
        return next?.priority === "fresh" ? merged(next, { dueMs, priority }) : { dueMs, priority };
      }
    }
  }

  private isDue({ dueMs }: { readonly dueMs: number }): boolean {
    return dueMs <= this.deps.clock.nowMs();
  }

  private dueAfter(delayMs: number): number {
    if (Number.isNaN(delayMs)) throw new RangeError("the delay of a key is not a number");
    return this.deps.clock.nowMs() + delayMs;
  }

  private startPause(): void {
    this.pause = this.deps.clock.setTimer(0, () => {
      this.endPause();
      this.dispatch();
    });
  }

  private endPause(): void {
    this.pause?.cancel();
    this.pause = undefined;
    this.startsThisTurn = 0;
  }

  // A real timer may fire slightly early; dispatch() then sets it again.
  private setAlarm(dueMs: number | undefined): void {
    if (dueMs === this.alarm?.dueMs) return;
    this.alarm?.timer.cancel();
    this.alarm = undefined;
    if (dueMs === undefined) return;
    const timer = this.deps.clock.setTimer(dueMs - this.deps.clock.nowMs(), () => {
      this.alarm = undefined;
      this.dispatch();
    });
    this.alarm = { dueMs, timer };
  }
}

/** Merges two wishes for one key: the earlier time and the higher priority. */
function merged(a: Wish | undefined, b: Wish): Wish {
  if (!a) return b;
  const isFresh = a.priority === "fresh" || b.priority === "fresh";
  return { dueMs: Math.min(a.dueMs, b.dueMs), priority: isFresh ? "fresh" : "resync" };
}

function createEntry<Key>(key: Key, group: string): Entry<Key> {
  return {
    key,
    group,
    place: "waiting",
    priority: "resync",
    failures: 0,
    next: undefined,
    waitingSinceMs: 0,
    startedMs: 0,
    dueMs: 0,
    heapIndex: -1,
    heapOrder: 0,
    before: undefined,
    after: undefined,
  };
}
