// Tracks the version from which a stream of desired state resumes: below every unsettled version (K2).
//
// - Per key, only the lowest and the highest unsettled version are kept. Memory is bounded by the number of keys,
//   however many versions of a failing key arrive. When a version between the two settles, the cursor moves right
//   behind it, which may be lower than necessary, but never too high.
// - A settled version stays settled when a reconnect delivers it again.
// - Every operation is O(log n) in the number of keys with unsettled versions.

interface Unsettled {
  readonly key: string;
  lowest: bigint;
  highest: bigint;
  /** Its index in the heap. */
  index: number;
}

/** Every version up to `upTo` is settled, except those in `except`. */
export interface SettledVersions {
  readonly upTo: bigint;
  readonly except: readonly bigint[];
}

// With more exceptions than this, only the cursor is reported: there is a lot of work, and the cursor moves.
const exceptMax = 100;

export class VersionCursor {
  /** The highest version received since the last rewind. */
  private received = 0n;
  /** The highest version ever received. A replay does not lower it, because it only repeats older versions. */
  private reached = 0n;
  private readonly unsettled = new Map<string, Unsettled>();
  /** A binary heap, the lowest version first. */
  private readonly heap: Unsettled[] = [];
  private readonly settledUpTo = new Map<string, bigint>();

  /** How far the stream has come since the last rewind. */
  get position(): bigint {
    return this.received;
  }

  get version(): bigint {
    const lowest = this.heap[0]?.lowest;
    return lowest !== undefined && lowest <= this.received ? lowest - 1n : this.received;
  }

  /** A failing key holds the cursor back. Here it is listed as an exception instead. */
  get settled(): SettledVersions {
    if (this.unsettled.size > exceptMax) return { upTo: this.version, except: [] };
    return { upTo: this.reached, except: [...this.unsettled.values()].map(({ highest }) => highest) };
  }

  /** The highest version ever received; a replay does not lower it. */
  get newest(): bigint {
    return this.reached;
  }

  /** How many keys have an unsettled version. */
  get unsettledCount(): number {
    return this.unsettled.size;
  }

  /** Receives a version without an object. */
  pass(version: bigint): void {
    if (version > this.received) this.received = version;
    if (version > this.reached) this.reached = version;
  }

  receive(version: bigint, key: string): void {
    this.pass(version);
    if (version <= (this.settledUpTo.get(key) ?? 0n)) return;
    const known = this.unsettled.get(key);
    if (known === undefined) {
      this.insert({ key, lowest: version, highest: version, index: this.heap.length });
      return;
    }
    if (version > known.highest) known.highest = version;
    if (version >= known.lowest) return;
    known.lowest = version;
    this.rise(known);
  }

  /** Everything about the key up to this version is applied or rejected. */
  settle(key: string, version: bigint): void {
    if (version > (this.settledUpTo.get(key) ?? 0n)) this.settledUpTo.set(key, version);
    const known = this.unsettled.get(key);
    if (known === undefined || version < known.lowest) return;
    if (version >= known.highest) {
      this.remove(known);
      return;
    }
    known.lowest = version + 1n;
    this.sink(known);
  }

  /** The stream starts again from 0; unsettled versions stay unsettled. */
  rewind(): void {
    this.received = 0n;
  }

  /** The server restarted its numbering: previous versions mean nothing any more. */
  restart(): void {
    this.received = 0n;
    this.reached = 0n;
    this.unsettled.clear();
    this.heap.length = 0;
    this.settledUpTo.clear();
  }

  /** Drops the key; its unsettled versions no longer hold the cursor back. */
  forget(key: string): void {
    const known = this.unsettled.get(key);
    if (known !== undefined) this.remove(known);
    this.settledUpTo.delete(key);
  }

  private insert(item: Unsettled): void {
    this.unsettled.set(item.key, item);
    this.heap.push(item);
    this.rise(item);
  }

  private remove(item: Unsettled): void {
    this.unsettled.delete(item.key);
    const last = this.heap.pop();
    if (last === undefined || last === item) return;
    this.put(last, item.index);
    this.rise(last);
    this.sink(last);
  }

  private rise(item: Unsettled): void {
    while (item.index > 0) {
      const parent = this.heap[(item.index - 1) >> 1];
      if (parent === undefined || parent.lowest <= item.lowest) break;
      const index = item.index;
      this.put(item, parent.index);
      this.put(parent, index);
    }
  }

  private sink(item: Unsettled): void {
    for (;;) {
      const left = this.heap[2 * item.index + 1];
      const right = this.heap[2 * item.index + 2];
      const child = left && right && right.lowest < left.lowest ? right : left;
      if (child === undefined || item.lowest <= child.lowest) break;
      const index = item.index;
      this.put(item, child.index);
      this.put(child, index);
    }
  }

  private put(item: Unsettled, index: number): void {
    this.heap[index] = item;
    item.index = index;
  }
}
