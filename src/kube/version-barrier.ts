// Lets a writer wait until the cache has seen its own write, so that it does not decide on the
// state from before. One number is enough: events come in the order of their resourceVersions, so
// whoever has seen a later one has seen this one.
import { onAbort } from "../concurrency/abort-listener.ts";
import { hasReached, isOlder } from "./resource-version.ts";

interface Waiter {
  readonly resourceVersion: string;
  readonly resolve: () => void;
}

export class VersionBarrier {
  private seen: string | undefined;
  private readonly waiters = new Set<Waiter>();

  get resourceVersion(): string | undefined {
    return this.seen;
  }

  /** Never goes back: an old or repeated event does not undo what was seen. */
  advance(resourceVersion: string): void {
    if (this.seen === undefined || !isOlder(resourceVersion, this.seen)) this.reset(resourceVersion);
  }

  /** For a new list, which says where we are whatever came before. */
  reset(resourceVersion: string): void {
    this.seen = resourceVersion;
    for (const waiter of this.waiters) {
      if (!hasReached(resourceVersion, waiter.resourceVersion)) continue;
      this.waiters.delete(waiter);
      waiter.resolve();
    }
  }

  /** Rejects with the signal's reason when the signal comes first. */
  waitFor(resourceVersion: string, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      if (this.seen !== undefined && hasReached(this.seen, resourceVersion)) {
        resolve();
        return;
      }
      const waiter = {
        resourceVersion,
        resolve: () => {
          stopListening();
          resolve();
        },
      };
      const stopListening = onAbort(signal, () => {
        this.waiters.delete(waiter);
        reject(signal.reason);
      });
      this.waiters.add(waiter);
    });
  }
}
