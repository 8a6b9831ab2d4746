// A first-in-first-out list from whose middle an item can be taken in constant time.
// The links are fields of the items. An array costs a walk for that, and so in the end
// does a Set: V8 keeps the holes of deleted items and walks over them to find the
// first, so that draining a long one takes time with the square of its length.

export interface FifoItem<T> {
  before: T | undefined;
  after: T | undefined;
}

/** An item is in at most one list at a time; only its list may touch its links. */
export class Fifo<T extends FifoItem<T>> {
  private head: T | undefined;
  private tail: T | undefined;
  private count = 0;

  get size(): number {
    return this.count;
  }

  get first(): T | undefined {
    return this.head;
  }

  push(item: T): void {
    item.before = this.tail;
    if (this.tail) this.tail.after = item;
    else this.head = item;
    this.tail = item;
    this.count += 1;
  }

  remove(item: T): void {
    if (item.before) item.before.after = item.after;
    else this.head = item.after;
    if (item.after) item.after.before = item.before;
    else this.tail = item.before;
    item.before = undefined;
    item.after = undefined;
    this.count -= 1;
  }
}
