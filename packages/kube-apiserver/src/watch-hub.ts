// All open watches of one server, so that they can be ended, starved or counted together.

export interface OpenWatch {
  readonly path: string;
  /** Ends the stream as a server does that closes a healthy watch: without a word. */
  close(): void;
}

export class WatchHub {
  private readonly open = new Set<OpenWatch>();
  private readonly drops: { matches: (path: string) => boolean; count: number }[] = [];
  /** False: no watcher gets bookmarks any more, as from a server that lost its connection to etcd. */
  bookmarks = true;

  add(watch: OpenWatch): () => void {
    this.open.add(watch);
    return () => void this.open.delete(watch);
  }

  get size(): number {
    return this.open.size;
  }

  closeAll(matches: (path: string) => boolean = () => true): void {
    for (const watch of [...this.open]) if (matches(watch.path)) watch.close();
  }

  /** The next events on matching paths get lost. */
  dropEvents(count: number, matches: (path: string) => boolean = () => true): void {
    this.drops.push({ matches, count });
  }

  /** Whether this event is one of those to lose. */
  takesDrop(path: string): boolean {
    const drop = this.drops.find(({ matches, count }) => count > 0 && matches(path));
    if (drop === undefined) return false;
    drop.count--;
    return true;
  }
}
