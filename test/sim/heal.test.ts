import assert from "node:assert/strict";
import { test } from "node:test";
import { faults, healAll } from "../../sim/adversary.ts";
import { Choices } from "../../sim/choices.ts";
import { calm } from "../../sim/link.ts";
import { loadKinds } from "../../sim/sim-agent.ts";
import { World } from "../../sim/world.ts";

const longestFaultMs = 300_000;
// A new process has new links, in good weather.
const lasting = faults.filter(({ ids }) => !ids.includes("E01") && !ids.includes("E02"));

test("no fault is left after the adversary has stopped, also if faults overlap", async () => {
  const world = await World.create({ seed: 1, kinds: await loadKinds() });
  for (const agent of world.agents) agent.start();
  await world.runFor(30_000);
  for (const round of ["first", "second", "third"]) {
    for (const { name, begin } of lasting) await begin(world, new Choices(1, `${round} ${name}`));
    await world.runFor(2_000);
  }
  healAll(world);
  await world.runFor(longestFaultMs);
  assert.equal(world.violation, undefined);
  for (const link of world.agents.flatMap(({ links }) => links))
    assert.deepEqual(link.weather, calm, link.name);
  assert.deepEqual(world.cluster.weather, { refusals: 0, lateFailures: 0, isDown: false });
  assert.equal(world.cluster.rules.size, 0);
  assert.equal(world.vault.isDown, false);
  assert.equal(world.plane.answering()?.store, world.plane.store);
  world.abandon();
});
