// A control plane that knows none of the running objects is wrong about all of them, however it says so. Nothing is
// deleted, and one loud line says so: two hundred equal lines would hide what has to be done.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Code } from "@connectrpc/connect";
import { kinds } from "../../src/kinds/kinds.ts";
import { createRecordedLog } from "../support/recorded-log.ts";
import { defaultOptions, region, SimulatedRegion } from "./simulated-region.ts";

const isLong = process.env["KRANE_TEST_LONG"] === "1";
const createDeploymentController = await kinds.deployment.loadController();

async function startLoggedAgent(world: SimulatedRegion) {
  const { log, lines } = createRecordedLog();
  const agent = world.createAgentOf("deployments", (deps) =>
    createDeploymentController(defaultOptions, { ...deps, log }),
  );
  await world.resolved(agent.controller.start());
  return { ...agent, lines };
}

async function populated(count: number, hasDigests: boolean) {
  const world = await SimulatedRegion.create({ hasDigests });
  for (let index = 1; index <= count; index++) await world.setDeployment(index, { replicas: 0 });
  const agent = await startLoggedAgent(world);
  await world.until("all are there", () => agent.controller.status().stream?.cursor === BigInt(count));
  // Older than what is kept for its age alone.
  await world.clock.advance(301_000);
  assert.deepEqual(agent.lines, []);
  return { world, agent };
}

/** Longer than every confirmation takes, and than a window of the budget. */
const longMs = 720_000;
type LoggedAgent = Awaited<ReturnType<typeof startLoggedAgent>>;

async function assertKept(world: SimulatedRegion, agent: LoggedAgent, count: number): Promise<void> {
  assert.equal((await world.replicaSets()).length, count);
  assert.deepEqual(
    agent.writes.filter(({ verb }) => verb === "delete"),
    [],
  );
}

/** What is said at the level at which people are woken. */
function loudLines({ lines }: LoggedAgent) {
  return lines
    .filter((line) => line["level"] === "error")
    .map((line) => [line["msg"], line["reason"], line["count"]]);
}

function unknownObjects(count: number) {
  return [
    "the control plane does not know objects that are running; holding back their deletion",
    `only 0 of ${count} objects are known to the control plane`,
    count,
  ];
}

for (const count of [1, 3, 10, 200])
  test(`of ${count} objects none is deleted, and one loud line says so, when every request is answered not_found, though the stream has them`, async () => {
    const { world, agent } = await populated(count, false);
    world.plane.faults.failNext("getDesiredDeploymentState", Code.NotFound, Number.POSITIVE_INFINITY);
    const { controller } = agent;
    await world.until("it is noticed", () => controller.status().blockedDeletions === count, 300_000);
    assert.deepEqual(loudLines(agent), [unknownObjects(count)]);
    await world.clock.advance(longMs);
    await assertKept(world, agent, count);
    assert.equal(controller.status().resync?.asked, count);
    // A replay contradicts the responses: the suspicion starts again, and is logged again, in the same words.
    assert.deepEqual(new Set(loudLines(agent).map(String)), new Set([String(unknownObjects(count))]));
    await world.stop();
  });

for (const { count, hasDigests } of [1, 3, 10, 200].flatMap((count) => [
  { count, hasDigests: true },
  { count, hasDigests: false },
])) {
  const how = hasDigests ? "compared by digest" : "each asked for";
  // Those of absence.test.ts have 200 without digests.
  const skip = count > 10 && !hasDigests && !isLong;
  describe(`of ${count} objects, ${how}, none is deleted, and one loud line says so`, { skip }, () => {
    test("when the control plane was restored from nothing under a running agent", async () => {
      const { world, agent } = await populated(count, hasDigests);
      world.plane.faults.restoreFromEmpty(region);
      await world.clock.advance(longMs);
      await assertKept(world, agent, count);
      assert.equal(agent.controller.status().blockedDeletions, count);
      assert.deepEqual(loudLines(agent), [unknownObjects(count)]);
      await world.stop();
    });

    test("when the first snapshot that an agent ever sees is empty", async () => {
      const { world, agent: before } = await populated(count, hasDigests);
      await before.stop();
      world.plane.faults.restoreFromEmpty(region);
      const agent = await startLoggedAgent(world);
      await world.clock.advance(longMs);
      await assertKept(world, agent, count);
      assert.equal(agent.controller.status().blockedDeletions, count);
      assert.deepEqual(loudLines(agent), [unknownObjects(count)]);
      await world.stop();
    });

    test("when the control plane does not know the region", async () => {
      const { world, agent } = await populated(count, hasDigests);
      for (const rpc of ["getDesiredDeploymentState", "watchDeployments", "getDesiredDigest"] as const)
        world.plane.faults.failNext(rpc, Code.FailedPrecondition, Number.POSITIVE_INFINITY);
      world.plane.faults.cutStreams();
      await world.clock.advance(longMs);
      await assertKept(world, agent, count);
      // That nobody can be asked is no suspicion against any object.
      assert.equal(agent.controller.status().blockedDeletions, 0);
      assert.equal(agent.controller.status().stream?.lastErrorCode, "failed_precondition");
      const said = new Set(loudLines(agent).map(([message]) => message));
      assert.deepEqual(said, new Set(["the control plane does not serve this agent's region"]));
      await world.stop();
    });
  });
}
