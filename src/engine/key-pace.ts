// Limits how often a new state of one key is applied: a token bucket per key, so a key that changes all the time gets
// its newest state every two seconds. Faster would help nobody, and would take CPU from the other controllers (K6)
// and load the API server. At the rate of people and roll-outs, every state is applied at once.
//
// A second bucket limits the writes of one and the same state, also those that fail: a program in the cluster that
// changes objects all the time would otherwise be answered as fast as it acts. New states do not wait for that one.
//
// The burst beyond the first state is also limited for all keys together; otherwise hundreds of keys that change all
// the time would spend their bursts at the same moment.
import type { Clock } from "../concurrency/clock.ts";

// Enough that a person who tries something out never waits.
const burst = 4;
const refillMs = 2_000;
// A state may take several reconciles with writes: a namespace, then a policy, then the workload.
const writeBurst = 8;
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
  readonly writes: { left: number; filledMs: number };
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
      const writes = { left: writeBurst, filledMs: nowMs };
      this.remember(key, { sequence, left: burst - 1, filledMs: nowMs, workedMs: nowMs, writes });
      return 0;
    }
    if (pace.sequence === sequence) {
      refill(pace.writes, writeBurst, refillMs, nowMs);
      return pace.writes.left > 0 ? 0 : pace.writes.filledMs + refillMs - nowMs;
    }
    refill(pace, burst, refillMs, nowMs);
    if (pace.left === 0) return pace.filledMs + refillMs - nowMs;
    const restMs = pace.workedMs + refillMs - nowMs;
    if (restMs > 0 && !this.takeShared(nowMs)) return restMs;
    pace.left -= 1;
    pace.sequence = sequence;
    pace.workedMs = nowMs;
    return 0;
  }

  /** A reconcile of the key sent something to the cluster. */
  wrote(key: string): void {
    const writes = this.paces.get(key)?.writes;
    if (writes === undefined) return;
    refill(writes, writeBurst, refillMs, this.clock.nowMs());
    writes.left = Math.max(0, writes.left - 1);
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
