// A sentinel on the whole road: five objects from the control plane into the cluster, and health back.
import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { DeleteSentinelSchema, Health } from "../../src/gen/ctrl/v1/sentinel_pb.ts";
import { ObjectStatus_Outcome } from "../../src/gen/krane/v1/agent_pb.ts";
import { podDisruptionBudgets } from "../../src/kube/resources.ts";
import { applySentinel } from "../support/sentinel-messages.ts";
import {
  isSettled,
  liveDeployment,
  namesOf,
  objectNames,
  setSentinel,
  startSentinelAgent,
} from "./sentinel-agents.ts";
import { region, SimulatedRegion } from "./simulated-region.ts";

const never = new AbortController().signal;
const image = "registry.example/platform/sentinel:1";

async function statusOf(world: SimulatedRegion, index = 1) {
  return world.plane.admin.sentinelStatus(region, `se_${index}`);
}

async function untilAvailable(world: SimulatedRegion, replicas: number): Promise<void> {
  await world.until(`${replicas} replicas are reported`, async () => {
    const status = await statusOf(world);
    return status?.availableReplicas === replicas && status.runningImage !== "";
  });
}

test("a sentinel becomes five objects, in an order that survives a crash, and its health is reported", async () => {
  const world = await SimulatedRegion.create({ withPods: true });
  await setSentinel(world, 1, { replicas: 3 });
  const agent = await startSentinelAgent(world);
  await untilAvailable(world, 3);
  const status = await statusOf(world);
  assert.deepEqual([status?.health, status?.runningImage], [Health.HEALTHY, image]);
  assert.deepEqual(await objectNames(world), namesOf(1));
  assert.deepEqual(
    agent.writes.map(({ verb, kind, key }) => `${verb} ${kind} ${key}`),
    [
      "create Namespace sentinel",
      "apply Deployment sentinel/gate-1",
      "apply Service sentinel/gate-1",
      "apply PodDisruptionBudget sentinel/gate-1",
      "apply Service sentinel/gate-1-gossip-lan",
      "apply CiliumNetworkPolicy sentinel/gate-1-gossip-lan",
    ],
  );
  const [object] = agent.controller.objects();
  assert.deepEqual(
    [object?.key, object?.id, object?.ready, object?.total],
    ["sentinel/gate-1", "se_1", 3, 3],
  );
  await world.stop();
  assert.equal(world.clock.timerCount, 0);
});

test("every object that is written says whose it is, and two of them that the Deployment owns them", async () => {
  const world = await SimulatedRegion.create();
  await setSentinel(world, 1);
  const agent = await startSentinelAgent(world);
  await world.until("it is settled", () => isSettled(agent, 1n));
  for (const { manifest, kind } of agent.writes)
    assert.equal(manifest?.metadata?.labels?.["app.kubernetes.io/managed-by"], "krane", kind);
  const uid = (await liveDeployment(world, 1))?.metadata?.uid;
  const owners = agent.writes.map(({ manifest }) =>
    manifest?.metadata?.ownerReferences?.map((one) => one.uid),
  );
  assert.deepEqual(owners, [undefined, undefined, [uid], [uid], undefined, undefined]);
  await world.stop();
});

test("a roll-out is reported without an image until all pods run the new one, and never as down", async () => {
  const world = await SimulatedRegion.create({ withPods: true });
  await setSentinel(world, 1, { replicas: 2 });
  const agent = await startSentinelAgent(world);
  await untilAvailable(world, 2);
  const before = world.reportedSentinels.length;
  const next = "registry.example/platform/sentinel:2";
  await setSentinel(world, 1, { replicas: 2, image: next });
  await world.until(
    "the new image runs",
    async () => (await statusOf(world))?.runningImage === next,
    300_000,
  );
  const told = world.reportedSentinels.slice(before);
  assert.ok(told.some(({ runningImage }) => runningImage === ""));
  assert.ok(told.every(({ runningImage }) => runningImage !== image));
  assert.ok(
    told.every(({ availableReplicas, health }) => availableReplicas >= 2 && health === Health.HEALTHY),
  );
  assert.deepEqual(
    agent.writes.slice(6).map(({ kind }) => kind),
    ["Deployment"],
  );
  await world.stop();
});

test("a sentinel without replicas is paused, and its budget follows the count", async () => {
  const world = await SimulatedRegion.create({ withPods: true });
  await setSentinel(world, 1, { replicas: 1 });
  await startSentinelAgent(world);
  await untilAvailable(world, 1);
  const budget = async () => {
    const live = await world.api.get(
      podDisruptionBudgets,
      { namespace: "sentinel", name: "gate-1" },
      {},
      never,
    );
    return [live?.spec?.minAvailable, live?.spec?.maxUnavailable];
  };
  assert.deepEqual(await budget(), [1, undefined]);
  await world.plane.admin.scaleSentinel(region, "se_1", 0);
  await world.until("it is paused", async () => (await statusOf(world))?.health === Health.PAUSED);
  assert.equal((await statusOf(world))?.availableReplicas, 0);
  await world.until("the budget follows", async () => (await budget())[1] === 1);
  assert.deepEqual(await budget(), [undefined, 1]);
  await world.stop();
});

test("a deleted sentinel leaves nothing, and is reported as one that does not run", async () => {
  const world = await SimulatedRegion.create({ withPods: true });
  await setSentinel(world, 1);
  await setSentinel(world, 2);
  const agent = await startSentinelAgent(world);
  await untilAvailable(world, 1);
  const version = await world.plane.admin.deleteSentinel(region, "se_1");
  await world.until("it is settled", () => isSettled(agent, version));
  assert.deepEqual(await objectNames(world), namesOf(2));
  await world.until("it is reported", () => {
    const last = world.reportedSentinels.findLast(({ k8sName }) => k8sName === "gate-1");
    return last?.health === Health.UNHEALTHY && last.availableReplicas === 0 && last.sentinelId === "se_1";
  });
  const reports = world.reportedSentinels.length;
  // What runs is told again now and then; what does not is told once.
  await world.clock.advance(1_500_000);
  assert.deepEqual(
    world.reportedSentinels.slice(reports).filter(({ k8sName }) => k8sName === "gate-1"),
    [],
  );
  await world.stop();
});

test("a second apply, a resync, a replay and a restart write nothing (K11)", async () => {
  const world = await SimulatedRegion.create({ withPods: true });
  const sizes = { cpuMillicores: 1000n, memoryMib: 1024n };
  for (let index = 1; index <= 3; index++) await setSentinel(world, index, { ...sizes, replicas: index });
  const first = await startSentinelAgent(world);
  await world.until("all are settled", () => isSettled(first, 3n));
  await world.clock.advance(5_000);
  const before = first.writes.length;
  await setSentinel(world, 1, { ...sizes, replicas: 1 });
  await world.clock.advance(1_500_000);
  assert.deepEqual(first.writes.slice(before), []);
  await first.stop();
  const second = await startSentinelAgent(world);
  await world.clock.advance(1_500_000);
  assert.deepEqual(second.writes, []);
  assert.deepEqual(second.controller.objects({ onlyTroubled: true }), []);
  await world.stop();
});

test("a control plane that takes no reports costs no apply, and has them all when it is back (K9)", async () => {
  const world = await SimulatedRegion.create({ withPods: true });
  world.plane.faults.failNext("reportSentinelStatus", Code.Unavailable, Number.POSITIVE_INFINITY);
  await setSentinel(world, 1);
  const agent = await startSentinelAgent(world);
  await world.until("it is settled", () => isSettled(agent, 1n));
  await world.until(
    "its pod runs",
    async () => (await liveDeployment(world, 1))?.status?.availableReplicas === 1,
  );
  assert.deepEqual(await objectNames(world), namesOf(1));
  assert.equal(await statusOf(world), undefined);
  world.plane.faults.heal();
  await world.until(
    "it is reported",
    async () => (await statusOf(world))?.health === Health.HEALTHY,
    300_000,
  );
  await world.stop();
});

test("a sentinel that cannot be right is parked with the field that is wrong, and costs the others nothing", async () => {
  const world = await SimulatedRegion.create();
  await setSentinel(world, 1, { cpuMillicores: 0n });
  await setSentinel(world, 2, { k8sName: "Not A Name" });
  await setSentinel(world, 3);
  const agent = await startSentinelAgent(world);
  await world.until("the cursor is behind all", () => isSettled(agent, 3n));
  assert.deepEqual(await objectNames(world), namesOf(3));
  const troubled = agent.controller.objects({ onlyTroubled: true });
  assert.deepEqual(
    troubled.map(({ outcome, fieldPath }) => [outcome, fieldPath]),
    [
      [ObjectStatus_Outcome.PARKED, "k8s_name"],
      [ObjectStatus_Outcome.PARKED, "cpu_millicores"],
    ],
  );
  await setSentinel(world, 1);
  await world.until("the right one is there", () => isSettled(agent, 4n), 1_000);
  await world.stop();
});

test("an order that does not come from the stream is applied, and its outcome is returned", async () => {
  const world = await SimulatedRegion.create();
  const { controller } = await startSentinelAgent(world);
  const message = applySentinel({ k8sName: "gate-1", sentinelId: "se_1" });
  const applied = await world.resolved(controller.apply(message, never));
  assert.equal(applied.outcome, "applied");
  assert.deepEqual(await objectNames(world), namesOf(1));
  const refused = await world.resolved(controller.apply({ ...message, replicas: -1 }, never));
  assert.deepEqual([refused.outcome, refused.fieldPath], ["parked", "replicas"]);
  const deletion = create(DeleteSentinelSchema, { k8sName: "gate-1" });
  assert.equal((await world.resolved(controller.delete(deletion, never))).outcome, "deleted");
  assert.deepEqual(await objectNames(world), []);
  await world.stop();
});
