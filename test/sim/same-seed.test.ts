// Runs on each Node version: a run depends on its seed only.
import assert from "node:assert/strict";
import { test } from "node:test";
import { runSeed } from "../../sim/run-seed.ts";
import { loadKinds } from "../../sim/sim-agent.ts";

const kinds = await loadKinds();
const disturbedMs = 5 * 60_000;

test("a seed gives the same run every time, and another seed another one", async () => {
  const run = (seed: number) => runSeed({ seed, kinds, disturbedMs });
  const [first, second, other] = [await run(1), await run(1), await run(2)];
  assert.equal(second.hash, first.hash);
  assert.equal(second.steps, first.steps);
  assert.notEqual(other.hash, first.hash);
});
