// The agent dies between any two writes of a sentinel's life; whoever comes after it ends in the same
// state: nothing missing, nothing left behind, nothing twice.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createMortalKubeApi, type MortalKubeApi } from "./mortal-kube-api.ts";
import {
  contentOf,
  isSettled,
  namesOf,
  objectNames,
  type SentinelAgent,
  setSentinel,
  startSentinelAgent,
} from "./sentinel-agents.ts";
import { region, SimulatedRegion } from "./simulated-region.ts";

/** Namespace and five objects. */
const applyWrites = 6;
const deleteWrites = 5;
/** Of Deployment and budget. */
const changeWrites = 2;
const changed = { replicas: 3, image: "registry.example/platform/sentinel:2" };

type Life = (world: SimulatedRegion) => Promise<bigint>;
const born: Life = (world) => setSentinel(world, 1);
const grown: Life = (world) => setSentinel(world, 1, changed);
const gone: Life = (world) => world.plane.admin.deleteSentinel(region, "se_1");

/** Lives until it has made so many writes, and is then killed; false where it had less to write. */
async function liveUntil(world: SimulatedRegion, writes: number, version: bigint): Promise<boolean> {
  let api: MortalKubeApi | undefined;
  const agent = await startSentinelAgent(world, {
    wrapApi: (real) => {
      api = createMortalKubeApi(real, writes);
      return api;
    },
  });
  await world.until("it is dead or done", () => api?.isDead === true || isSettled(agent, version));
  await agent.kill();
  return api?.isDead === true;
}

async function settled(world: SimulatedRegion, version: bigint): Promise<SentinelAgent> {
  const agent = await startSentinelAgent(world);
  await world.until("it is settled", () => isSettled(agent, version));
  return agent;
}

/** At rest, and stays so: the one who cleaned up, and one more who comes after. */
async function assertAtRest(world: SimulatedRegion, agent: SentinelAgent): Promise<void> {
  await world.clock.advance(5_000);
  const before = agent.writes.length;
  await world.clock.advance(720_000);
  assert.deepEqual(agent.writes.slice(before), []);
  assert.deepEqual(agent.controller.objects({ onlyTroubled: true }), []);
  await agent.stop();
  const next = await startSentinelAgent(world);
  await world.clock.advance(130_000);
  assert.deepEqual(next.writes, []);
}

/** What a life without any accident leads to. */
async function undisturbed(lives: readonly Life[]): Promise<readonly unknown[]> {
  const world = await SimulatedRegion.create();
  for (const life of lives) await settled(world, await life(world)).then((agent) => agent.stop());
  const content = await contentOf(world, 1);
  await world.stop();
  return content;
}

describe("a sentinel that is applied, with two deaths in a row", () => {
  for (let first = 0; first <= applyWrites; first++)
    test(`the first of them after ${first} writes`, async () => {
      const expected = await undisturbed([born]);
      for (let second = 0; second < applyWrites - Math.max(0, first - 1); second++) {
        const world = await SimulatedRegion.create({ seed: 1 + second });
        const version = await born(world);
        assert.ok(await liveUntil(world, first, version), "it died on the way");
        await liveUntil(world, second, version);
        const agent = await settled(world, version);
        assert.deepEqual(await objectNames(world), namesOf(1));
        assert.deepEqual(await contentOf(world, 1), expected);
        await assertAtRest(world, agent);
        await world.stop();
      }
    });
});

describe("a sentinel that is deleted, with two deaths in a row", () => {
  for (let first = 0; first <= deleteWrites; first++)
    test(`the first of them after ${first} writes`, async () => {
      for (let second = 0; second <= deleteWrites - first; second++) {
        const world = await SimulatedRegion.create({ seed: 1 + second });
        await (await settled(world, await born(world))).stop();
        const version = await gone(world);
        assert.ok(await liveUntil(world, first, version), "it died on the way");
        await liveUntil(world, second, version);
        const agent = await settled(world, version);
        assert.deepEqual(await objectNames(world), []);
        await assertAtRest(world, agent);
        await world.stop();
      }
    });
});

describe("a sentinel whose desired state changes while no agent runs", () => {
  for (let writes = 0; writes <= applyWrites; writes++)
    test(`applied with ${writes} writes, then deleted: nothing is left`, async () => {
      const world = await SimulatedRegion.create();
      assert.ok(await liveUntil(world, writes, await born(world)));
      const agent = await settled(world, await gone(world));
      assert.deepEqual(await objectNames(world), []);
      await assertAtRest(world, agent);
      await world.stop();
    });

  for (let writes = 0; writes <= deleteWrites; writes++)
    test(`deleted with ${writes} writes, then wanted again: all five are there`, async () => {
      const expected = await undisturbed([grown]);
      const world = await SimulatedRegion.create();
      await (await settled(world, await born(world))).stop();
      assert.ok(await liveUntil(world, writes, await gone(world)));
      const agent = await settled(world, await grown(world));
      assert.deepEqual(await objectNames(world), namesOf(1));
      assert.deepEqual(await contentOf(world, 1), expected);
      await assertAtRest(world, agent);
      await world.stop();
    });

  for (let writes = 0; writes <= changeWrites; writes++)
    test(`changed with ${writes} writes: the change is completed`, async () => {
      const expected = await undisturbed([born, grown]);
      const world = await SimulatedRegion.create();
      await (await settled(world, await born(world))).stop();
      const version = await grown(world);
      assert.ok(await liveUntil(world, writes, version));
      const agent = await settled(world, version);
      assert.deepEqual(await contentOf(world, 1), expected);
      await assertAtRest(world, agent);
      await world.stop();
    });
});

test("a row that vanishes after a death in the middle of a delete leaves nothing behind", async () => {
  for (let writes = 0; writes <= deleteWrites; writes++) {
    const world = await SimulatedRegion.create();
    await setSentinel(world, 2);
    await (await settled(world, await born(world))).stop();
    assert.ok(await liveUntil(world, writes, await gone(world)));
    await world.plane.admin.forgetSentinel(region, "se_1");
    await startSentinelAgent(world);
    await world.until(
      "only the other one is left",
      async () => String(await objectNames(world)) === String(namesOf(2)),
      900_000,
    );
    await world.stop();
  }
});
