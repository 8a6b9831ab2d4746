// The whole road: from the control plane to the cluster, and back.
import assert from "node:assert/strict";
import { test } from "node:test";
import { replicaSets } from "../../src/kube/resources.ts";
import { region, SimulatedRegion } from "./simulated-region.ts";

const never = new AbortController().signal;

test("a deployment reaches the cluster and its pods reach the control plane", async () => {
  const world = await SimulatedRegion.create({ withPods: true });
  await world.setDeployment(1, { replicas: 2 });
  const agent = await world.startAgent();
  await world.until("two running instances are reported", async () => {
    const instances = await world.plane.admin.instances(region, "d_1");
    return instances.length === 2 && instances.every(({ status }) => status === 2);
  });
  assert.deepEqual(await world.replicaSetNames(), ["web-1"]);
  assert.equal((await world.policies()).length, 1);
  assert.deepEqual(
    agent.writes.map(({ verb, kind }) => `${verb} ${kind}`),
    ["create Namespace", "apply CiliumNetworkPolicy", "apply ReplicaSet"],
  );
  const [object] = agent.controller.objects().filter(({ key }) => key === "acme/web-1");
  assert.equal(object?.ready, 2);
  assert.equal(agent.controller.status().stream?.cursor, 1n);
  await world.stop();
  assert.equal(world.clock.timerCount, 0);
});

test("a scale, a new version and a delete follow", async () => {
  const world = await SimulatedRegion.create();
  await world.setDeployment(1);
  await world.startAgent();
  await world.until("it is there", async () => (await world.replicaSets()).length === 1);
  await world.plane.admin.scale(region, "d_1", 5);
  await world.until("it is scaled", async () => (await world.replicaSets())[0]?.spec?.replicas === 5);
  await world.plane.admin.deleteDeployment(region, "d_1");
  await world.until("it is gone", async () => (await world.replicaSets()).length === 0);
  await world.until("its policy is gone", async () => (await world.policies()).length === 0);
  await world.until("its end is reported", async () => {
    return (await world.plane.admin.deploymentReport(region, "d_1"))?.exists === false;
  });
  await world.stop();
});

test("a second apply, a resync, a replay and a restart write nothing (K11)", async () => {
  const world = await SimulatedRegion.create({ withPods: true });
  for (let index = 1; index <= 5; index++)
    await world.setDeployment(index, { memoryMib: 1024n, cpuMillicores: 1000n, replicas: 1 });
  const first = await world.startAgent();
  await world.until("all are there", async () => (await world.replicaSets()).length === 5);
  await world.clock.advance(5_000);
  const before = first.writes.length;
  await world.setDeployment(1, { memoryMib: 1024n, cpuMillicores: 1000n, replicas: 1 });
  await world.clock.advance(1_500_000);
  assert.equal(first.writes.length, before, JSON.stringify(first.writes.slice(before)));
  await first.stop();
  const second = await world.startAgent();
  await world.clock.advance(1_500_000);
  assert.deepEqual(second.writes, []);
  await world.stop();
});

test("what is edited or deleted by hand is put right without any resync", async () => {
  const world = await SimulatedRegion.create();
  await world.setDeployment(1);
  await world.startAgent({ resyncMs: 0, replayMs: 0 });
  await world.until("it is there", async () => (await world.replicaSets()).length === 1);
  const ref = { namespace: "acme", name: "web-1" };
  await world.api.apply(
    replicaSets,
    {
      metadata: { ...ref, labels: { "unkey.com/project.id": "edited" } },
      spec: { replicas: 9, selector: { matchLabels: { "unkey.com/deployment.id": "d_1" } } },
    },
    { fieldManager: "someone", force: true },
    never,
  );
  await world.until("the edit is undone", async () => {
    const [live] = await world.replicaSets();
    return live?.spec?.replicas === 1 && live.metadata?.labels?.["unkey.com/project.id"] === "proj_1a2B3c4D";
  });
  await world.api.delete(replicaSets, ref, {}, never);
  await world.until("it is back", async () => (await world.replicaSets()).length === 1);
  await world.stop();
});

test("two agents at once end in the same state, without a fight", async () => {
  const world = await SimulatedRegion.create();
  for (let index = 1; index <= 10; index++) await world.setDeployment(index, { port: 8000 + index });
  const agents = [await world.startAgent(), await world.startAgent()];
  await world.until("both are done", () =>
    agents.every(({ controller }) => controller.status().stream?.cursor === 10n),
  );
  await world.plane.admin.deleteDeployment(region, "d_1");
  await world.plane.admin.scale(region, "d_2", 4);
  await world.clock.advance(120_000);
  const before = agents.map(({ writes }) => writes.length);
  await world.clock.advance(1_200_000);
  assert.deepEqual(
    agents.map(({ writes }) => writes.length),
    before,
  );
  assert.equal((await world.replicaSets()).length, 9);
  for (const { controller } of agents) assert.deepEqual(controller.objects({ onlyTroubled: true }), []);
  await world.stop();
});

test("every object that is written carries krane's labels, and its manager", async () => {
  const world = await SimulatedRegion.create();
  await world.setDeployment(1);
  const agent = await world.startAgent();
  await world.until("it is there", async () => (await world.replicaSets()).length === 1);
  for (const { manifest, kind } of agent.writes)
    assert.equal(manifest?.metadata?.labels?.["app.kubernetes.io/managed-by"], "krane", kind);
  for (const { metadata } of [...(await world.replicaSets()), ...(await world.policies())]) {
    const managers = (metadata?.managedFields ?? []).map(
      ({ manager, operation }) => `${manager} ${operation}`,
    );
    assert.deepEqual(managers, ["krane Apply"]);
  }
  await world.stop();
});

test("a port that was edited by hand and put back can be changed by the control plane afterwards", async () => {
  const world = await SimulatedRegion.create();
  await world.setDeployment(1, { port: 8080 });
  const agent = await world.startAgent({ resyncMs: 0, replayMs: 0 });
  const ports = async () =>
    (await world.replicaSets())[0]?.spec?.template?.spec?.containers[0]?.ports?.map(
      ({ containerPort }) => containerPort,
    );
  await world.until("it is there", async () => String(await ports()) === "8080");
  const [live] = await world.replicaSets();
  assert.ok(live);
  const path = "/spec/template/spec/containers/0/ports/0/containerPort";
  const edit = [{ op: "replace" as const, path, value: 9999 }];
  await world.api.patch(replicaSets, live, edit, { fieldManager: "kubectl-edit" }, never);
  await world.until("the edit is undone", async () => String(await ports()) === "8080");
  await world.setDeployment(1, { port: 3000 });
  await world.until("the new port is there alone", async () => String(await ports()) === "3000");
  assert.deepEqual(agent.controller.objects({ onlyTroubled: true }), []);
  await world.stop();
});
