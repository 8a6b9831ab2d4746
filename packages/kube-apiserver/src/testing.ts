// A fake clock and seeded randomness for tests. With both, a run of the server and its controllers gives the same uids,
// resourceVersions and events every time, and hours of it take milliseconds.
import type { Clock, Random } from "./clock.ts";

interface Waiting {
  readonly dueMs: number;
  readonly order: number;
  readonly callback: () => void;
}

/**
 * A clock that only tests advance. Timers fire in order of their due time, and then of their creation. Between two
 * timers, all settled promises run their callbacks, as they would with a real clock.
 */
export class FakeClock implements Clock {
  private elapsedMs = 0;
  private timersSet = 0;
  private readonly waiting = new Set<Waiting>();
  private readonly startWallMs: number;

  constructor(startWallMs = Date.UTC(2026, 0, 1)) {
    this.startWallMs = startWallMs;
  }

  wallMs(): number {
    return this.startWallMs + this.elapsedMs;
  }

  nowMs(): number {
    return this.elapsedMs;
  }

  setTimer(delayMs: number, callback: () => void) {
    if (Number.isNaN(delayMs)) throw new RangeError("the delay of a timer is not a number");
    const timer = { dueMs: this.elapsedMs + Math.max(delayMs, 0), order: this.timersSet++, callback };
    this.waiting.add(timer);
    return { cancel: () => void this.waiting.delete(timer) };
  }

  /** Pending timers: 0 after a clean stop. */
  get timerCount(): number {
    return this.waiting.size;
  }

  /** Waits for all promises that settle without time passing. */
  async settle(): Promise<void> {
    for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve));
  }

  async advance(byMs: number): Promise<void> {
    const targetMs = this.elapsedMs + byMs;
    await this.settle();
    for (let next = this.nextDue(targetMs); next !== undefined; next = this.nextDue(targetMs)) {
      this.waiting.delete(next);
      this.elapsedMs = Math.max(this.elapsedMs, next.dueMs);
      next.callback();
      await this.settle();
    }
    this.elapsedMs = targetMs;
  }

  private nextDue(untilMs: number): Waiting | undefined {
    let first: Waiting | undefined;
    for (const timer of this.waiting) {
      if (timer.dueMs > untilMs) continue;
      if (!first || timer.dueMs < first.dueMs || (timer.dueMs === first.dueMs && timer.order < first.order))
        first = timer;
    }
    return first;
  }
}

/** A small deterministic generator (mulberry32): the same seed gives the same run. */
export function createSeededRandom(seed: number): Random {
  let state = seed >>> 0;
  return {
    next() {
      state = (state + 0x6d2b79f5) >>> 0;
      let mixed = Math.imul(state ^ (state >>> 15), state | 1);
      mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
      return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
    },
  };
}
