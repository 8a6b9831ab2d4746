// Limits concurrent calls, with a bounded FIFO queue for further ones, so that unauthenticated callers cannot flood a
// server behind krane (K10).
import { onAbort } from "../concurrency/abort-listener.ts";
import { Fifo, type FifoItem } from "../concurrency/fifo.ts";

export interface CallSlotsOptions {
  readonly runningMax: number;
  readonly waitingMax: number;
}

interface Waiting extends FifoItem<Waiting> {
  readonly begin: () => void;
}

export class CallSlots {
  private readonly options: CallSlotsOptions;
  private readonly waiting = new Fifo<Waiting>();
  private running = 0;

  constructor(options: CallSlotsOptions) {
    this.options = options;
  }

  /** Returns undefined, without running the call, when the queue is full too. */
  run<T>(call: () => Promise<T>, signal: AbortSignal): Promise<T> | undefined {
    const { runningMax, waitingMax } = this.options;
    if (this.running >= runningMax && this.waiting.size >= waitingMax) return undefined;
    return this.runInTurn(call, signal);
  }

  private async runInTurn<T>(call: () => Promise<T>, signal: AbortSignal): Promise<T> {
    if (this.running < this.options.runningMax) this.running += 1;
    else await this.turn(signal);
    try {
      return await call();
    } finally {
      this.release();
    }
  }

  /** Resolves when this call has taken over the slot of a finished one. Rejects with the signal's reason, without a slot. */
  private turn(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      const item: Waiting = {
        before: undefined,
        after: undefined,
        begin() {
          stopListening();
          resolve();
        },
      };
      this.waiting.push(item);
      const stopListening = onAbort(signal, () => {
        this.waiting.remove(item);
        reject(signal.reason);
      });
    });
  }

  // The slot goes directly to the next waiting call. If it were freed first, a new call could take it in between, and
  // one call too many would run.
  private release(): void {
    const next = this.waiting.first;
    if (next === undefined) {
      this.running -= 1;
      return;
    }
    this.waiting.remove(next);
    next.begin();
  }
}
