// A work queue of distinct keys with one worker, so that writes happen in the order of the keys and runs can be repeated.
//
// A key that is added while it is handled is handled once more afterwards. A failed key is retried after a back-off, or
// immediately if it is added again.
import { type ApiServerDeps, type Clock, onAbort, type Random, sleep, type Timer } from "../clock.ts";

export type WorkOutcome =
  | { readonly kind: "done" }
  /** Handle the key again after this time. */
  | { readonly kind: "again"; readonly afterMs: number };

/** If it throws, the key is retried. */
export type Reconcile = (key: string, signal: AbortSignal) => Promise<WorkOutcome>;

interface Delayed {
  readonly key: string;
  readonly dueMs: number;
}

const retry = { initialMs: 20, maxMs: 10_000 };

// In-process calls never yield to the event loop. After this many keys the worker yields, so that many keys do not block
// the rest of the process.
const keysPerTurn = 256;

export class KeyQueue {
  private readonly clock: Clock;
  private readonly random: Random;
  private readonly onError: (key: string, error: unknown) => void;
  private readonly ready = new Set<string>();
  /** Sorted by due time, and the same entries by key. A key is either ready or delayed. */
  private readonly delayed: Delayed[] = [];
  private readonly delayedByKey = new Map<string, Delayed>();
  private readonly failures = new Map<string, number>();
  private wake: () => void = () => undefined;

  constructor({ clock, random }: ApiServerDeps, onError: (key: string, error: unknown) => void) {
    this.clock = clock;
    this.random = random;
    this.onError = onError;
  }

  add(key: string): void {
    const delayed = this.delayedByKey.get(key);
    if (delayed !== undefined) {
      this.delayedByKey.delete(key);
      this.delayed.splice(this.delayed.indexOf(delayed), 1);
    }
    this.ready.add(key);
    this.wake();
  }

  /** Resolves when the signal has aborted and the key in work is finished. */
  async run(reconcile: Reconcile, signal: AbortSignal): Promise<void> {
    const stopListening = onAbort(signal, () => this.wake());
    for (let handled = 0; !signal.aborted; ) {
      this.wakeDelayed();
      const [key] = this.ready;
      if (key === undefined) {
        await this.waitForKey();
        continue;
      }
      this.ready.delete(key);
      await this.handle(key, reconcile, signal);
      if (++handled % keysPerTurn === 0) await sleep(this.clock, 0, signal).catch(() => undefined);
    }
    stopListening();
  }

  private async handle(key: string, reconcile: Reconcile, signal: AbortSignal): Promise<void> {
    try {
      const outcome = await reconcile(key, signal);
      this.failures.delete(key);
      if (outcome.kind === "again") this.delay(key, outcome.afterMs);
    } catch (error) {
      if (signal.aborted) return;
      const failures = this.failures.get(key) ?? 0;
      this.failures.set(key, failures + 1);
      this.delay(key, backoffMs(retry, failures, this.random));
      this.onError(key, error);
    }
  }

  private delay(key: string, delayMs: number): void {
    // It was added again while it was handled, so it does not wait.
    if (this.ready.has(key)) return;
    const dueMs = this.clock.nowMs() + delayMs;
    let [from, to] = [0, this.delayed.length];
    while (from < to) {
      const middle = (from + to) >> 1;
      if ((this.delayed[middle]?.dueMs ?? 0) <= dueMs) from = middle + 1;
      else to = middle;
    }
    const delayed = { key, dueMs };
    this.delayed.splice(from, 0, delayed);
    this.delayedByKey.set(key, delayed);
  }

  private wakeDelayed(): void {
    const nowMs = this.clock.nowMs();
    for (let [next] = this.delayed; next !== undefined && next.dueMs <= nowMs; [next] = this.delayed)
      this.add(next.key);
  }

  /** Waits until a key is added or due, or the run ends. */
  private async waitForKey(): Promise<void> {
    const [next] = this.delayed;
    let timer: Timer | undefined;
    await new Promise<void>((resolve) => {
      this.wake = resolve;
      if (next !== undefined) timer = this.clock.setTimer(next.dueMs - this.clock.nowMs(), resolve);
    });
    this.wake = () => undefined;
    timer?.cancel();
  }
}

export interface BackoffOptions {
  readonly initialMs: number;
  readonly maxMs: number;
}

/** Doubles with every failure; half of the delay is random. */
export function backoffMs({ initialMs, maxMs }: BackoffOptions, failures: number, random: Random): number {
  const capMs = Math.min(maxMs, initialMs * 2 ** failures);
  return capMs * (0.5 + random.next() / 2);
}
