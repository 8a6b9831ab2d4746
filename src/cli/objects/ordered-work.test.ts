import assert from "node:assert/strict";
import { test } from "node:test";
import { eventually } from "../../../test/support/eventually.ts";
import { type OrderedWork, workInOrder } from "./ordered-work.ts";

/** Work that ends when the test says so. */
class HeldWork {
  readonly told: string[] = [];
  readonly running = new Map<number, { resolve(result: string): void; reject(error: unknown): void }>();

  start(count: number, more: Partial<OrderedWork<number, string>> = {}) {
    return workInOrder<number, string>(
      Array.from({ length: count }, (_, index) => index),
      {
        atOnce: 3,
        work: (item) => new Promise((resolve, reject) => this.running.set(item, { resolve, reject })),
        tell: (item, result) => this.told.push(`${item} ${result}`),
        goesOn: () => false,
        ...more,
      },
    );
  }

  end(item: number): void {
    this.running.get(item)?.resolve("done");
    this.running.delete(item);
  }

  fail(item: number): void {
    this.running.get(item)?.reject(new Error(`${item} is bad`));
    this.running.delete(item);
  }

  runs(...items: readonly number[]): Promise<void> {
    return eventually("these run", () =>
      assert.deepEqual(
        [...this.running.keys()].sort((a, b) => a - b),
        items,
      ),
    );
  }
}

test("as many run at a time as may, and each is told once all before it are", async () => {
  const held = new HeldWork();
  const ended = held.start(5);
  await held.runs(0, 1, 2);
  held.end(2);
  await held.runs(0, 1, 3);
  held.end(1);
  await held.runs(0, 3, 4);
  assert.deepEqual(held.told, []);
  held.end(0);
  await eventually("those are told", () => assert.deepEqual(held.told, ["0 done", "1 done", "2 done"]));
  held.end(4);
  held.end(3);
  assert.deepEqual(await ended, { errors: [], left: 0 });
  assert.deepEqual(held.told.slice(3), ["3 done", "4 done"]);
});

test("after a failure nothing more is begun, and what was begun is waited for and told", async () => {
  const held = new HeldWork();
  const ended = held.start(9);
  await held.runs(0, 1, 2);
  held.fail(1);
  await held.runs(0, 2);
  held.end(2);
  held.end(0);
  assert.deepEqual(await ended, { errors: [new Error("1 is bad")], left: 6 });
  assert.deepEqual(held.told, ["0 done", "2 done"]);
});

test("failures that do not end it are all named, in the order of the items", async () => {
  const held = new HeldWork();
  const ended = held.start(4, { goesOn: (errors) => errors.length < 3 });
  await held.runs(0, 1, 2);
  held.fail(2);
  await held.runs(0, 1, 3);
  held.fail(1);
  held.end(0);
  held.end(3);
  const { errors } = await ended;
  assert.deepEqual(
    errors.map((error) => (error as Error).message),
    ["1 is bad", "2 is bad"],
  );
  assert.deepEqual(held.told, ["0 done", "3 done"]);
});

test("nothing to do is done", async () => {
  assert.deepEqual(await new HeldWork().start(0), { errors: [], left: 0 });
});
