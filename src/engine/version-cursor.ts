// Where a stream of desired state resumes (K2): below every version that still needs work.
//
// - Of each key only the lowest and the highest unsettled version are kept, so memory is bounded by
//   the number of keys, however many versions of one of them come while it fails. Where a version
//   between the two settles, the cursor stays right behind that one: lower than it might be, never higher.
// - What was settled once stays settled: a reconnect delivers it again and changes nothing.
// - Every operation is O(log n) in the number of keys with unsettled versions.

interface Unsettled {
  readonly key: string;
  lowest: bigint;
  highest: bigint;
  /** Its place in the heap. */
  index: number;
}

/** Every version up to `upTo` is settled, but for those in `except`. */
export interface SettledVersions {
  readonly upTo: bigint;
  readonly except: readonly bigint[];
}

// With more of them, whoever asks is told of the cursor alone: there is a lot to do, and it moves.
const exceptMax = 100;

export class VersionCursor {
  /** The highest version that came since the last reset. */
  private received = 0n;
  /** The same, and a replay does not take it back: it brings what came before once more. */
  private reached = 0n;
  private readonly unsettled = new Map<string, Unsettled>();
  /** A binary heap, the lowest version first. */
  private readonly heap: Unsettled[] = [];
  private readonly settledUpTo = new Map<string, bigint>();

  get version(): bigint {
    const lowest = this.heap[0]?.lowest;
    return lowest !== undefined && lowest <= this.received ? lowest - 1n : this.received;
  }

  /** One key that fails holds the cursor back; here it holds nobody else back. */
  get settled(): SettledVersions {
    if (this.unsettled.size > exceptMax) return { upTo: this.version, except: [] };
    return { upTo: this.reached, except: [...this.unsettled.values()].map(({ highest }) => highest) };
  }

  /** How many keys have work to do. */
  get unsettledCount(): number {
    return this.unsettled.size;
  }

  /** A version came that says nothing about any key. */
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

  /** Everything about the key up to this version is done or refused for good. */
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

  /** The stream begins anew from 0; what is unsettled stays so. */
  rewind(): void {
    this.received = 0n;
  }

  /** The server counts anew: versions of before mean nothing any more. */
  restart(): void {
    this.received = 0n;
    this.reached = 0n;
    this.unsettled.clear();
    this.heap.length = 0;
    this.settledUpTo.clear();
  }

  /** The key is no longer of interest, and whatever of it is unsettled holds nothing up. */
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
