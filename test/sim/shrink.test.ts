import assert from "node:assert/strict";
import { test } from "node:test";
import type { PlannedEvent, SeedOptions, SeedOutcome } from "../../sim/run-seed.ts";
import { shrinkPlan } from "../../sim/shrink.ts";

const plan = Array.from(
  { length: 40 },
  (_, index): PlannedEvent => ({ index, atMs: index * 1_000, kind: "fault", name: `fault ${index}` }),
);

/** A world that violates K5 if all of these events happen. */
function worldThatNeeds(...needed: readonly number[]) {
  return async ({ seed, only }: SeedOptions): Promise<SeedOutcome> => ({
    seed,
    hash: "",
    steps: 0,
    simulatedMs: 0,
    plan,
    faultsInjected: 0,
    lastLines: [],
    ...(needed.every((index) => only?.has(index) ?? true) && {
      violation: { invariant: "K5", what: "", atMs: 35_000 },
    }),
  });
}

async function shrunk(runsMax: number, ...needed: readonly number[]) {
  const run = worldThatNeeds(...needed);
  const outcome = await run({ seed: 1, kinds: [] });
  const { events, runs } = await shrinkPlan({ seed: 1, kinds: [] }, outcome, runsMax, run);
  return { indexes: events.map(({ index }) => index), runs };
}

test("only the events that the violation needs are left", async () => {
  assert.deepEqual((await shrunk(1_000, 3, 17, 30)).indexes, [3, 17, 30]);
});

test("a violation that needs no event leaves none", async () => {
  assert.deepEqual((await shrunk(1_000)).indexes, []);
});

test("events after the violation are left out without a run, and there are no more runs than allowed", async () => {
  const { indexes, runs } = await shrunk(1, 3, 17);
  assert.equal(runs, 1);
  assert.ok(Math.max(...indexes) <= 35, "no event after the violation");
});
