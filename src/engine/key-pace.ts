// How often one key may be given a new state. Every state is applied while changes come as people and
// roll-outs make them. A key that is changed without end gets the newest state every other second instead: more
// often would tell nobody anything, and would take the processor from the other controllers (K6) and the
// API server from everybody. The few states that a key may have at once beyond its first are bounded for all keys
// together as well: hundreds that change without end would else begin with all of their bursts at the same time.
import type { Clock } from "../concurrency/clock.ts";

// A person who tries something out is not held up by this.
const burst = 4;
const refillMs = 2_000;
const sharedBurst = 16;
const sharedRefillMs = 250;
// Whoever falls out of this memory begins with a full burst again.
const keysMax = 10_000;

interface Pace {
  /** The state that was worked on last; the same one again costs nothing. */
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

  /** 0 where the state may be worked on now, else how long it has to wait. */
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
