// Whole worlds under faults: whole agents, the control plane and the cluster on a virtual clock. See docs/simulation.md.
import assert from "node:assert/strict";
import { test } from "node:test";
import { failedSeeds } from "../../sim/failed-seeds.ts";
import { planOf, runSeed } from "../../sim/run-seed.ts";
import { loadKinds } from "../../sim/sim-agent.ts";

const kinds = await loadKinds();
const disturbedMs = 5 * 60_000;

for (const { seed, found } of failedSeeds)
  test(`seed ${seed}: ${found}`, async () => {
    const { violation } = await runSeed({ seed, kinds });
    assert.equal(violation, undefined);
  });

for (const seed of [3, 4, 5])
  test(`no invariant is violated in the world of seed ${seed}`, async () => {
    const { violation, lastLines } = await runSeed({ seed, kinds, disturbedMs });
    assert.equal(violation, undefined, lastLines.join("\n"));
  });

test("a plan depends on nothing but its seed", () => {
  assert.deepEqual(planOf(7), planOf(7));
  assert.notDeepEqual(planOf(7), planOf(8));
});

test("each act of a world has a plan of its own, whose events have numbers of their own", () => {
  const numbers = [0, 1, 2].flatMap((act) => planOf(7, disturbedMs, act).map(({ index }) => index));
  assert.equal(new Set(numbers).size, numbers.length);
  const times = (act: number) => planOf(7, disturbedMs, act).map(({ atMs }) => atMs);
  assert.notDeepEqual(times(1), times(0));
});
