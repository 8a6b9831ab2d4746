// Lets a writer wait until the cache has seen its own write, so that it does not decide on stale state. One number is
// enough: events arrive in the order of their resourceVersions.
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

  /** Never goes back: an old or repeated event changes nothing. */
  advance(resourceVersion: string): void {
    if (this.seen === undefined || !isOlder(resourceVersion, this.seen)) this.reset(resourceVersion);
  }

  /** For a new list, whose version counts even if it is lower. */
  reset(resourceVersion: string): void {
    this.seen = resourceVersion;
    for (const waiter of this.waiters) {
      if (!hasReached(resourceVersion, waiter.resourceVersion)) continue;
      this.waiters.delete(waiter);
      waiter.resolve();
    }
  }

  /** Rejects with the signal's reason if the signal aborts first. */
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
