// Items by the time they are due, the earliest first, ties in the order they came: a
// binary heap in which each item knows its place, so that one whose plans change
// leaves at once. Left inside until its time, a key that is delayed and brought
// forward again and again would pile up copies of itself.

export interface DueItem {
  dueMs: number;
  /** The heap's own: the item's place, and its turn among those due at the same time. */
  heapIndex: number;
  heapOrder: number;
}

/** An item is in at most one heap at a time, and its due time stays while it is in. */
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
