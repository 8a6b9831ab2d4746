// How often one key may be given a new state. Every state is applied while changes come as people and
// roll-outs make them. A key that is changed without end gets the newest state every other second instead: more
// often would tell nobody anything, and would take the processor from the other controllers (K6) and the
// API server from everybody.
import type { Clock } from "../concurrency/clock.ts";

// A person who tries something out is not held up by this.
const burst = 4;
const refillMs = 2_000;
// Whoever falls out of this memory begins with a full burst again.
const keysMax = 10_000;

interface Pace {
  /** The state that was worked on last; the same one again costs nothing. */
  sequence: number;
  left: number;
  filledMs: number;
}

export class KeyPace {
  private readonly clock: Clock;
  private readonly paces = new Map<string, Pace>();

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** 0 where the state may be worked on now, else how long it has to wait. */
  waitMs(key: string, sequence: number): number {
    const nowMs = this.clock.nowMs();
    const pace = this.paces.get(key);
    if (pace === undefined) {
      this.remember(key, { sequence, left: burst - 1, filledMs: nowMs });
      return 0;
    }
    if (pace.sequence === sequence) return 0;
    const refilled = Math.min(burst - pace.left, Math.floor((nowMs - pace.filledMs) / refillMs));
    pace.left += refilled;
    pace.filledMs = pace.left === burst ? nowMs : pace.filledMs + refilled * refillMs;
    if (pace.left === 0) return pace.filledMs + refillMs - nowMs;
    pace.left -= 1;
    pace.sequence = sequence;
    return 0;
  }

  forget(key: string): void {
    this.paces.delete(key);
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
