// A cluster without network policies: sentinels get their other four objects, the agent names what is missing,
// and the policy comes by itself.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ObjectStatus_Outcome } from "../../src/gen/krane/v1/agent_pb.ts";
import {
  isSettled,
  namesOf,
  objectNames,
  setSentinel,
  startSentinelAgent,
  watchOnly,
} from "./sentinel-agents.ts";
import { region, SimulatedRegion } from "./simulated-region.ts";

const four = namesOf(1).filter((name) => !name.startsWith("CiliumNetworkPolicy"));

async function withoutCilium(options: Parameters<typeof startSentinelAgent>[1] = {}) {
  const world = await SimulatedRegion.create({ withoutCilium: true });
  await setSentinel(world, 1);
  const agent = await startSentinelAgent(world, options);
  await world.until("four are there", async () => (await objectNames(world, false)).length === 4);
  return { world, agent };
}

test("the other four are there, and what is missing is said", async () => {
  const { world, agent } = await withoutCilium();
  await world.clock.advance(1_800_000);
  assert.deepEqual(await objectNames(world, false), four);
  const [waiting] = agent.controller.objects({ onlyTroubled: true });
  assert.equal(waiting?.outcome, ObjectStatus_Outcome.RETRYING);
  assert.match(waiting?.reason ?? "", /the cluster has no CiliumNetworkPolicy/);
  const { caches, parked, retrying } = agent.controller.status();
  assert.deepEqual([parked, retrying], [0, 1]);
  const missing = caches.find(({ kind }) => kind === "cilium.io/CiliumNetworkPolicy");
  assert.equal(missing?.synced, false);
  assert.notEqual(missing?.lastError, "");
  assert.equal(agent.writes.length, 5, "and nothing is written repeatedly");
  await world.stop();
});

test("the policy comes by itself once there can be one, without a resync", async () => {
  const { world, agent } = await withoutCilium(watchOnly);
  await world.clock.advance(600_000);
  await world.installCilium();
  await world.until("it is settled", () => isSettled(agent, 1n));
  assert.deepEqual(await objectNames(world), namesOf(1));
  assert.deepEqual(agent.controller.objects({ onlyTroubled: true }), []);
  await world.stop();
});

test("changes of the four are applied and their drift is repaired meanwhile, and a delete leaves nothing", async () => {
  const { world, agent } = await withoutCilium(watchOnly);
  const { appsDeployments, services } = await import("../../src/kube/resources.ts");
  const never = new AbortController().signal;
  const ref = { namespace: "sentinel", name: "gate-1" };
  await setSentinel(world, 1, { replicas: 3 });
  await world.until("it is scaled", async () => {
    return (await world.api.get(appsDeployments, ref, {}, never))?.spec?.replicas === 3;
  });
  await world.api.delete(services, ref, {}, never);
  await world.until("the Service is back", async () => (await objectNames(world, false)).length === 4);
  const version = await world.plane.admin.deleteSentinel(region, "se_1");
  await world.until("it is settled", () => isSettled(agent, version));
  assert.deepEqual(await objectNames(world, false), []);
  await world.stop();
});

test("a restart in such a cluster writes nothing (K11)", async () => {
  const { world, agent } = await withoutCilium();
  await agent.stop();
  const next = await startSentinelAgent(world);
  await world.clock.advance(900_000);
  assert.deepEqual(next.writes, []);
  await world.stop();
});
