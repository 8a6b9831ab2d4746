// A doubly linked FIFO list with removal from the middle in constant time. The links are fields of the items. An array
// needs a scan for that, and so does a Set: V8 keeps the holes of deleted items and scans them to find the first one, so
// draining a long Set takes quadratic time.

export interface FifoItem<T> {
  before: T | undefined;
  after: T | undefined;
}

/** An item is in at most one list at a time; only its list may change its links. */
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
