import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Fifo, type FifoItem } from "./fifo.ts";

interface Item extends FifoItem<Item> {
  readonly id: number;
}

test("a list returns its items in insertion order, whichever are removed from the middle", () => {
  const operation = fc.oneof(fc.constant("push" as const), fc.nat({ max: 20 }));
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 60, size: "max" }), (operations) => {
      const fifo = new Fifo<Item>();
      const expected: Item[] = [];
      for (const [id, step] of operations.entries()) {
        if (step === "push") {
          const item = { id, before: undefined, after: undefined };
          fifo.push(item);
          expected.push(item);
        } else {
          const [item] = expected.splice(step, 1);
          if (item) fifo.remove(item);
        }
        assert.equal(fifo.first, expected[0]);
        assert.equal(fifo.size, expected.length);
      }
      for (const item of expected) {
        assert.equal(fifo.first, item);
        fifo.remove(item);
      }
      assert.equal(fifo.first, undefined);
      assert.equal(fifo.size, 0);
    }),
  );
});
