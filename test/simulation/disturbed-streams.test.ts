// Streams that are cut and agents that are killed, at any moment: in the end the cluster and the control
// plane know the same as without, and no key was ever written in the wrong order (K2, K3).
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createSeededRandom } from "../../src/concurrency/random.ts";
import { region, type SimulatedAgent, SimulatedRegion } from "./simulated-region.ts";
import { assertInOrder } from "./written-order.ts";

const messages = 200;
const deployments = 12;
const everyPoint = process.env["KRANE_TEST_LONG"] === "1";
const cutPoints = everyPoint ? Array.from({ length: messages }, (_, index) => index) : [0, 1, 57, 120, 199];
const killPoints = everyPoint ? Array.from({ length: 100 }, (_, index) => 2 * index) : [0, 33, 118, 198];

type Disturbance = (world: SimulatedRegion, agent: SimulatedAgent) => Promise<SimulatedAgent>;

interface Ending {
  readonly cluster: readonly string[];
  readonly reports: readonly string[];
}

/** The same two hundred changes each time; the tag of an image says which change it comes from. */
async function change(world: SimulatedRegion, step: number, choice: number): Promise<void> {
  const index = step % deployments;
  const report = await world.plane.admin.deployments(region);
  const row = report.find(({ id }) => id === `d_${index}`);
  if (row?.desired === "running" && choice < 0.3)
    await world.plane.admin.deleteDeployment(region, `d_${index}`);
  else
    await world.setDeployment(index, {
      image: `registry.example/acme/web:${step}`,
      replicas: Math.floor(choice * 10),
      environmentId: `env_${index % 3}`,
      port: 8000 + (index % 5),
    });
}

async function run(at: number, disturb: Disturbance): Promise<Ending> {
  const world = await SimulatedRegion.create({ seed: at + 1 });
  const choices = createSeededRandom(42);
  const agents = [await world.startAgent()];
  for (let step = 0; step < messages; step++) {
    await change(world, step, choices.next());
    const current = agents.at(-1);
    if (step === at && current !== undefined) {
      const next = await disturb(world, current);
      if (next !== current) agents.push(next);
    }
    // Bursts, so that a cut falls into the middle of one as well as between two.
    if (step % 7 === 0) await world.clock.advance(5);
  }
  await world.clock.advance(20_000);
  const agent = agents.at(-1);
  await world.until("everything is settled", () => agent?.controller.status().stream?.cursor === 200n);
  await world.clock.advance(90_000);
  for (const { writes } of agents) assertInOrder(writes);
  const ending = await endOf(world);
  await world.stop();
  return ending;
}

async function endOf(world: SimulatedRegion): Promise<Ending> {
  const sets = (await world.replicaSets()).map(
    ({ metadata, spec }) =>
      `${metadata?.name} ${spec?.replicas} ${spec?.template?.spec?.containers[0]?.image}`,
  );
  const policies = (await world.policies()).map((policy) =>
    JSON.stringify([policy.metadata?.name, policy.spec]),
  );
  const reports: string[] = [];
  for (const { id } of await world.plane.admin.deployments(region)) {
    const report = await world.plane.admin.deploymentReport(region, id);
    reports.push(`${id} ${report?.exists} ${report?.instances.length}`);
  }
  return { cluster: [...sets, ...policies].sort(), reports: reports.sort() };
}

const undisturbed = run(-1, async (_, agent) => agent);

describe("a stream that is cut after a message changes nothing in the end", () => {
  for (const point of cutPoints) {
    test(`after message ${point + 1}`, async () => {
      const ending = await run(point, async (world, agent) => {
        world.plane.faults.cutStreams();
        return agent;
      });
      assert.deepEqual(ending, await undisturbed);
    });
  }
});

describe("an agent that is killed and started again changes nothing in the end", () => {
  for (const point of killPoints) {
    test(`after message ${point + 1}`, async () => {
      const ending = await run(point, async (world, agent) => {
        await agent.kill();
        return world.startAgent();
      });
      assert.deepEqual(ending, await undisturbed);
    });
  }
});
