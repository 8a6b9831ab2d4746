// A binary heap of items by due time, ties in insertion order. Each item knows its index, so that it can be removed early.
// Otherwise a key that is delayed and brought forward many times would leave many copies in the heap.

export interface DueItem {
  dueMs: number;
  /** Set by the heap: the item's index, and its order among items with the same due time. */
  heapIndex: number;
  heapOrder: number;
}

/** An item is in at most one heap at a time, and its due time must not change while it is in. */
export class DueHeap<T extends DueItem> {
  private readonly items: T[] = [];
  private pushes = 0;

  get size(): number {
    return this.items.length;
  }

  get first(): T | undefined {
    return this.items[0];
  }

  push(item: T): void {
    item.heapOrder = this.pushes++;
    this.items.push(item);
    this.rise(item, this.items.length - 1);
  }

  remove(item: T): void {
    const last = this.items.pop();
    if (last === undefined || last === item) return;
    // The last item fills the hole; it may belong further up or further down.
    this.rise(last, item.heapIndex);
    this.sink(last, last.heapIndex);
  }

  private rise(item: T, from: number): void {
    let index = from;
    while (index > 0) {
      const parentIndex = (index - 1) >> 1;
      const parent = this.items[parentIndex];
      if (parent === undefined || !isBefore(item, parent)) break;
      this.put(parent, index);
      index = parentIndex;
    }
    this.put(item, index);
  }

  private sink(item: T, from: number): void {
    let index = from;
    for (;;) {
      const left = this.items[2 * index + 1];
      const right = this.items[2 * index + 2];
      const child = left !== undefined && right !== undefined && isBefore(right, left) ? right : left;
      if (child === undefined || !isBefore(child, item)) break;
      const childIndex = child.heapIndex;
      this.put(child, index);
      index = childIndex;
    }
    this.put(item, index);
  }

  private put(item: T, index: number): void {
    this.items[index] = item;
    item.heapIndex = index;
  }
}

function isBefore(a: DueItem, b: DueItem): boolean {
  return a.dueMs < b.dueMs || (a.dueMs === b.dueMs && a.heapOrder < b.heapOrder);
}
