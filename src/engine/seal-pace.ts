// Spreads writes that only seal an object: after an upgrade or a change of the key every object needs one, and they must
// not compete with changes. A write that also changes content does not wait.
import type { Clock } from "../concurrency/clock.ts";

// Fast enough for thousands of objects within minutes, and a tenth of what an API server takes.
const betweenSealsMs = 50;

export class SealPace {
  private readonly clock: Clock;
  private readonly dueMs = new Map<string, number>();
  private nextMs = 0;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** How long to wait before this object is sealed. Each object keeps its turn; 0 uses it up. */
  waitMs(name: string): number {
    const nowMs = this.clock.nowMs();
    const dueMs = this.dueMs.get(name) ?? Math.max(nowMs, this.nextMs);
    if (!this.dueMs.has(name)) this.nextMs = dueMs + betweenSealsMs;
    if (dueMs > nowMs) {
      this.dueMs.set(name, dueMs);
      return dueMs - nowMs;
    }
    this.dueMs.delete(name);
    return 0;
  }

  /** The object is sealed, gone or no longer wanted. */
  forget(name: string): void {
    this.dueMs.delete(name);
  }
}
