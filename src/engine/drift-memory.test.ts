import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { DriftMemory } from "./drift-memory.ts";

test("what the server stored for a manifest counts as in sync, for that manifest only", () => {
  const memory = new DriftMemory(new FakeClock());
  memory.wrote("a", "sent", "changed-by-webhook");
  assert.ok(memory.isAsStored("a", "sent", "changed-by-webhook"));
  assert.ok(!memory.isAsStored("a", "sent", "changed-by-hand"));
  assert.ok(!memory.isAsStored("a", "other", "changed-by-webhook"));
});

test("the first repairs happen at once, later ones back off", async () => {
  const clock = new FakeClock();
  const memory = new DriftMemory(clock);
  memory.wrote("a", "sent", "sent");
  const pauses: number[] = [];
  for (let repair = 0; repair < 12; repair++) {
    const pauseMs = memory.pauseMs("a", "sent");
    pauses.push(pauseMs);
    await clock.advance(pauseMs);
    assert.equal(memory.pauseMs("a", "sent"), 0);
    memory.wrote("a", "sent", "sent");
  }
  assert.deepEqual(pauses.slice(0, 6), [0, 0, 0, 10_000, 20_000, 40_000]);
  assert.equal(Math.max(...pauses), 600_000);
});

test("a new manifest is not a repair, and old repairs are forgotten", async () => {
  const clock = new FakeClock();
  const memory = new DriftMemory(clock);
  for (let repair = 0; repair < 6; repair++) memory.wrote("a", "sent", "sent");
  assert.ok(memory.pauseMs("a", "sent") > 0);
  assert.equal(memory.pauseMs("a", "new"), 0);
  await clock.advance(3_600_000);
  memory.wrote("a", "sent", "sent");
  assert.equal(memory.pauseMs("a", "sent"), 0);
});
