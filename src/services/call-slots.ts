// So many calls at the same time, so many more that wait in turn, and no further ones: what strangers can
// make krane ask of somebody else has a limit (K10).
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

  /** Undefined, without having called, where even the places to wait are taken. */
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

  /** Resolves with the place of a call that ended; rejects with the signal's reason, without a place. */
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

  // The place goes straight to the next in line: were it given back first, a newcomer could take it
  // in between, and there would be one call too many.
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
