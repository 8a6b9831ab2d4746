// Lets whoever gave an order wait for what comes of it.
import { onAbort } from "../concurrency/abort-listener.ts";
import type { OutcomeRecord } from "./object-status.ts";

interface Wait {
  /** The change of the store that the order made. */
  readonly sequence: number;
  readonly resolve: (outcome: OutcomeRecord) => void;
}

export class OrderWaits {
  private readonly waits = new Map<string, Set<Wait>>();

  wait(key: string, sequence: number, signal: AbortSignal): Promise<OutcomeRecord> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      const wait: Wait = {
        sequence,
        resolve(outcome) {
          stopListening();
          resolve(outcome);
        },
      };
      const stopListening = onAbort(signal, () => {
        this.drop(key, wait);
        reject(signal.reason);
      });
      this.waits.set(key, (this.waits.get(key) ?? new Set()).add(wait));
    });
  }

  /** A key was worked on as it was at this change of the store. */
  settle(key: string, sequence: number, outcome: OutcomeRecord | undefined): void {
    if (outcome === undefined || outcome.outcome === "pending") return;
    for (const wait of this.waits.get(key) ?? []) {
      if (wait.sequence > sequence) continue;
      this.drop(key, wait);
      wait.resolve(outcome);
    }
  }

  private drop(key: string, wait: Wait): void {
    const waits = this.waits.get(key);
    waits?.delete(wait);
    if (waits?.size === 0) this.waits.delete(key);
  }
}
