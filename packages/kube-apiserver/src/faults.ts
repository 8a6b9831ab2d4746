// Injects the faults of real API servers, for tests and simulations.
import type { ApiResponse, ServerRequest } from "./request.ts";
import type { ObjectStore } from "./store.ts";
import type { WatchHub } from "./watch-hub.ts";

/** A response to send instead of the real one, "hang" for no response, or undefined to let the request pass. */
export type Intercept = (request: ServerRequest) => ApiResponse | "hang" | undefined;

export class Faults {
  private readonly store: ObjectStore;
  private readonly watches: WatchHub;
  private readonly intercepts: Intercept[] = [];

  constructor(store: ObjectStore, watches: WatchHub) {
    this.store = store;
    this.watches = watches;
  }

  /** Closes open watches without an error, as a server under load does. */
  closeWatches(matches?: (path: string) => boolean): void {
    this.watches.closeAll(matches);
  }

  /** Drops old changes: watches and pages from before get a 410. */
  compact(revision?: number): void {
    this.store.compact(revision);
  }

  /** Drops the next events of matching watches. */
  dropEvents(count: number, matches?: (path: string) => boolean): void {
    this.watches.dropEvents(count, matches);
  }

  stopBookmarks(): void {
    this.watches.bookmarks = false;
  }

  /** Called for every request, the latest interceptor first. Returns a function that removes it. */
  intercept(intercept: Intercept): () => void {
    this.intercepts.unshift(intercept);
    return () => {
      const index = this.intercepts.indexOf(intercept);
      if (index >= 0) this.intercepts.splice(index, 1);
    };
  }

  /** The injected outcome of a request. Transports call it before they pass the request on. */
  outcomeOf(request: ServerRequest): ApiResponse | "hang" | undefined {
    for (const intercept of [...this.intercepts]) {
      const outcome = intercept(request);
      if (outcome !== undefined) return outcome;
    }
    return undefined;
  }

  get openWatches(): number {
    return this.watches.size;
  }
}
