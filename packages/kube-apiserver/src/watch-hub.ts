// Tracks all open watches of one server, to close them, drop their events or stop their bookmarks.

export interface OpenWatch {
  readonly path: string;
  /** Ends the stream without an error, as a server does that closes a healthy watch. */
  close(): void;
}

export class WatchHub {
  private readonly open = new Set<OpenWatch>();
  private readonly drops: { matches: (path: string) => boolean; count: number }[] = [];
  /** False: watchers get no more bookmarks, as from a server that lost its connection to etcd. */
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

  /** Drops the next events on matching paths. */
  dropEvents(count: number, matches: (path: string) => boolean = () => true): void {
    this.drops.push({ matches, count });
  }

  /** Whether to drop this event. */
  takesDrop(path: string): boolean {
    const drop = this.drops.find(({ matches, count }) => count > 0 && matches(path));
    if (drop === undefined) return false;
    drop.count--;
    return true;
  }
}
