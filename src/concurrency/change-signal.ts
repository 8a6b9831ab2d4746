// Wakes every waiter once, at the next change.
import { onAbort } from "./abort-listener.ts";

export class ChangeSignal {
  private readonly waiting = new Set<() => void>();

  /** The number of waiters; 0 after every stream has ended. */
  get size(): number {
    return this.waiting.size;
  }

  wakeAll(): void {
    for (const wake of this.waiting) wake();
    this.waiting.clear();
  }

  wait(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      const wake = () => {
        stopListening();
        resolve();
      };
      const stopListening = onAbort(signal, () => {
        this.waiting.delete(wake);
        reject(signal.reason);
      });
      this.waiting.add(wake);
    });
  }
}
