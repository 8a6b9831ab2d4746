// A process of the simulated world. It sees time and messages only while it runs: a stalled process gets them late, and a
// killed one never. What it sent before is already on its way.
import type { Clock, Timer } from "../src/concurrency/clock.ts";

export class SimProcess {
  readonly name: string;
  readonly clock: Clock;
  /** Aborts when the process is gone, so that its peers see their connections end. */
  readonly gone: AbortSignal;
  private readonly world: Clock;
  private readonly ending = new AbortController();
  private readonly timers = new Set<Timer>();
  /** Messages that have arrived while it is stalled. */
  private readonly deliveries = new Set<Timer>();
  private stalledUntilMs = 0;
  private wallOffsetMs = 0;

  constructor(name: string, world: Clock) {
    this.name = name;
    this.world = world;
    this.gone = this.ending.signal;
    this.clock = {
      wallMs: () => world.wallMs() + this.wallOffsetMs,
      nowMs: () => world.nowMs(),
      setTimer: (delayMs, callback) => this.setTimer(delayMs, callback, this.timers),
    };
  }

  get isAlive(): boolean {
    return !this.gone.aborted;
  }

  get isStalled(): boolean {
    return this.world.nowMs() < this.stalledUntilMs;
  }

  /** Timers of its own that have not fired. */
  get timerCount(): number {
    return this.timers.size;
  }

  /** SIGKILL: nothing of it runs any more. */
  kill(): void {
    for (const pending of [this.timers, this.deliveries]) {
      for (const timer of pending) timer.cancel();
      pending.clear();
    }
    this.ending.abort();
  }

  /** SIGSTOP, and SIGCONT after that time. */
  stall(forMs: number): void {
    this.stalledUntilMs = Math.max(this.stalledUntilMs, this.world.nowMs() + forMs);
  }

  /** Ends a stall now. What waited for its end still runs then. */
  resume(): void {
    this.stalledUntilMs = Math.min(this.stalledUntilMs, this.world.nowMs());
  }

  /** Sets the wall clock; the monotonic clock stays as it is. */
  stepWallClock(byMs: number): void {
    this.wallOffsetMs += byMs;
  }

  /** Runs the callback as soon as the process has CPU time; never if it is killed before. */
  wake(callback: () => void): Timer {
    if (!this.isAlive) return { cancel: () => undefined };
    const waitMs = this.stalledUntilMs - this.world.nowMs();
    if (waitMs > 0) return this.setTimer(waitMs, callback, this.deliveries);
    callback();
    return { cancel: () => undefined };
  }

  private setTimer(delayMs: number, callback: () => void, pending: Set<Timer>): Timer {
    if (!this.isAlive) return { cancel: () => undefined };
    let inner: Timer | undefined;
    const timer: Timer = {
      cancel: () => {
        pending.delete(timer);
        inner?.cancel();
      },
    };
    const fire = () => {
      const waitMs = this.stalledUntilMs - this.world.nowMs();
      if (waitMs > 0) {
        inner = this.world.setTimer(waitMs, fire);
        return;
      }
      pending.delete(timer);
      callback();
    };
    pending.add(timer);
    inner = this.world.setTimer(delayMs, fire);
    return timer;
  }
}
