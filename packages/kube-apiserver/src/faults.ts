// Knobs for what goes wrong with real API servers, for tests and simulations.
import type { ServerRequest, WholeAnswer } from "./request.ts";
import type { ObjectStore } from "./store.ts";
import type { WatchHub } from "./watch-hub.ts";

/** An answer in place of the real one, "hang" for none at all, undefined to let it pass. */
export type Intercept = (request: ServerRequest) => WholeAnswer | "hang" | undefined;

export class Faults {
  private readonly store: ObjectStore;
  private readonly watches: WatchHub;
  private readonly intercepts: Intercept[] = [];

  constructor(store: ObjectStore, watches: WatchHub) {
    this.store = store;
    this.watches = watches;
  }

  /** Ends open watches without a word, as a server under load does. */
  closeWatches(matches?: (path: string) => boolean): void {
    this.watches.closeAll(matches);
  }

  /** Forgets old changes: watches and pages from before get 410. */
  compact(revision?: number): void {
    this.store.compact(revision);
  }

  /** Loses the next events of matching watches. */
  dropEvents(count: number, matches?: (path: string) => boolean): void {
    this.watches.dropEvents(count, matches);
  }

  stopBookmarks(): void {
    this.watches.bookmarks = false;
  }

  /** Asked for every request, the latest first; answers how to take it away again. */
  intercept(intercept: Intercept): () => void {
    this.intercepts.unshift(intercept);
    return () => {
      const index = this.intercepts.indexOf(intercept);
      if (index >= 0) this.intercepts.splice(index, 1);
    };
  }

  /** What a transport does before it hands over a request. */
  outcomeOf(request: ServerRequest): WholeAnswer | "hang" | undefined {
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
