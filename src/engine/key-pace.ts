// Limits how often a new state of one key is applied: a token bucket per key, so a key that changes all the time gets
// its newest state every two seconds. Faster would help nobody, and would take CPU from the other controllers (K6)
// and load the API server. At the rate of people and roll-outs, every state is applied at once.
//
// The burst beyond the first state is also limited for all keys together; otherwise hundreds of keys that change all
// the time would spend their bursts at the same moment.
import type { Clock } from "../concurrency/clock.ts";

// Enough that a person who tries something out never waits.
const burst = 4;
const refillMs = 2_000;
const sharedBurst = 16;
const sharedRefillMs = 250;
// A key that is evicted starts again with a full burst.
const keysMax = 10_000;

interface Pace {
  /** The state that was applied last; applying the same one again costs nothing. */
  sequence: number;
  left: number;
  filledMs: number;
  workedMs: number;
}

export class KeyPace {
  private readonly clock: Clock;
  private readonly paces = new Map<string, Pace>();
  private readonly shared = { left: sharedBurst, filledMs: 0 };

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** How long this state of the key has to wait; 0 when it may be applied now. */
  waitMs(key: string, sequence: number): number {
    const nowMs = this.clock.nowMs();
    const pace = this.paces.get(key);
    if (pace === undefined) {
      this.remember(key, { sequence, left: burst - 1, filledMs: nowMs, workedMs: nowMs });
      return 0;
    }
    if (pace.sequence === sequence) return 0;
    refill(pace, burst, refillMs, nowMs);
    if (pace.left === 0) return pace.filledMs + refillMs - nowMs;
    const restMs = pace.workedMs + refillMs - nowMs;
    if (restMs > 0 && !this.takeShared(nowMs)) return restMs;
    pace.left -= 1;
    pace.sequence = sequence;
    pace.workedMs = nowMs;
    return 0;
  }

  forget(key: string): void {
    this.paces.delete(key);
  }

  private takeShared(nowMs: number): boolean {
    refill(this.shared, sharedBurst, sharedRefillMs, nowMs);
    if (this.shared.left === 0) return false;
    this.shared.left -= 1;
    return true;
  }

  private remember(key: string, pace: Pace): void {
    this.paces.set(key, pace);
    if (this.paces.size <= keysMax) return;
    for (const oldest of this.paces.keys()) {
      this.paces.delete(oldest);
      return;
    }
  }
}

function refill(
  bucket: { left: number; filledMs: number },
  size: number,
  everyMs: number,
  nowMs: number,
): void {
  const refilled = Math.min(size - bucket.left, Math.floor((nowMs - bucket.filledMs) / everyMs));
  bucket.left += refilled;
  bucket.filledMs = bucket.left === size ? nowMs : bucket.filledMs + refilled * everyMs;
}
