import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { SealPace } from "./seal-pace.ts";

test("objects are sealed one after the other, and each keeps its turn", async () => {
  const clock = new FakeClock();
  const pace = new SealPace(clock);
  assert.deepEqual(
    ["a", "b", "c"].map((name) => pace.waitMs(name)),
    [0, 50, 100],
  );
  assert.equal(pace.waitMs("c"), 100, "asking again does not move it back");
  await clock.advance(50);
  assert.deepEqual([pace.waitMs("c"), pace.waitMs("b")], [50, 0]);
  await clock.advance(50);
  assert.equal(pace.waitMs("c"), 0);
});

test("after a pause the next one does not wait", async () => {
  const clock = new FakeClock();
  const pace = new SealPace(clock);
  pace.waitMs("a");
  await clock.advance(1_000);
  assert.equal(pace.waitMs("b"), 0);
});
