// The time of a simulated world. Nothing waits: time jumps to the next event. Between two events all promises that can
// settle do so. Events at the same time run in the order in which they were created, so a run can be repeated.
import type { Clock, Timer } from "../src/concurrency/clock.ts";
import { DueHeap, type DueItem } from "../src/concurrency/due-heap.ts";

interface Event extends DueItem {
  readonly callback: () => void;
  isWaiting: boolean;
}

const startWallMs = 1_767_225_600_000; // 2026-01-01T00:00:00Z

export class VirtualClock implements Clock {
  private readonly events = new DueHeap<Event>();
  private elapsedMs = 0;
  /** How many events have run. */
  steps = 0;

  wallMs(): number {
    return startWallMs + this.elapsedMs;
  }

  nowMs(): number {
    return this.elapsedMs;
  }

  setTimer(delayMs: number, callback: () => void): Timer {
    if (Number.isNaN(delayMs)) throw new RangeError("the delay of a timer is not a number");
    const dueMs = this.elapsedMs + Math.max(delayMs, 0);
    const event: Event = { dueMs, callback, isWaiting: true, heapIndex: 0, heapOrder: 0 };
    this.events.push(event);
    return {
      cancel: () => {
        if (event.isWaiting) this.events.remove(event);
        event.isWaiting = false;
      },
    };
  }

  /** Runs the events up to that time, or until `isOver`. */
  async runUntil(targetMs: number, isOver: () => boolean = () => false): Promise<void> {
    await promisesSettle();
    for (let next = this.events.first; next !== undefined && !isOver(); next = this.events.first) {
      if (next.dueMs > targetMs) break;
      this.events.remove(next);
      next.isWaiting = false;
      this.elapsedMs = Math.max(this.elapsedMs, next.dueMs);
      this.steps += 1;
      next.callback();
      await promisesSettle();
    }
    if (!isOver()) this.elapsedMs = Math.max(this.elapsedMs, targetMs);
  }
}

/** Nothing in a simulated world waits for I/O, so one turn of the event loop settles every promise that can settle. */
function promisesSettle(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
