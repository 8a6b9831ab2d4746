import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { DueHeap, type DueItem } from "./due-heap.ts";

const step = fc.oneof(
  { weight: 3, arbitrary: fc.record({ pushDueMs: fc.nat({ max: 30 }) }) },
  { weight: 1, arbitrary: fc.record({ removeIndex: fc.nat({ max: 30 }) }) },
);

test("the first item is the earliest, ties in insertion order, whichever items are removed early", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80, size: "max" }), (steps) => {
      const heap = new DueHeap<DueItem>();
      const expected: DueItem[] = [];
      for (const step of steps) {
        if ("pushDueMs" in step) {
          const item = { dueMs: step.pushDueMs, heapIndex: -1, heapOrder: 0 };
          heap.push(item);
          const place = expected.findIndex(({ dueMs }) => dueMs > item.dueMs);
          expected.splice(place < 0 ? expected.length : place, 0, item);
        } else {
          const [item] = expected.splice(step.removeIndex, 1);
          if (item) heap.remove(item);
        }
        assert.equal(heap.first, expected[0]);
        assert.equal(heap.size, expected.length);
      }
      for (const item of expected) {
        assert.equal(heap.first, item);
        heap.remove(item);
      }
      assert.equal(heap.size, 0);
    }),
    { numRuns: 300 },
  );
});
