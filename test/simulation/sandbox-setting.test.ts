// Running without the sandbox (isolation.runtime_class = ""), and changing that setting while deployments run: no pod is
// replaced, and nothing counts as drift or is held back.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ReplicaSet } from "kubernetes-types/apps/v1.js";
import { pods as podKind, replicaSets } from "../../src/kube/resources.ts";
import { type SimulatedAgent, SimulatedRegion } from "./simulated-region.ts";

const trusted = { runtimeClass: "" } as const;
const never = new AbortController().signal;

async function templateOf(world: SimulatedRegion) {
  const [replicaSet, ...others] = await world.replicaSets();
  assert.deepEqual(others, []);
  return replicaSet?.spec?.template ?? assert.fail("no ReplicaSet");
}

async function runtimeClass(world: SimulatedRegion): Promise<string | undefined> {
  return (await templateOf(world)).spec?.runtimeClassName;
}

async function podUids(world: SimulatedRegion): Promise<readonly string[]> {
  return (await world.list(podKind)).map(({ metadata }) => metadata?.uid ?? "").sort();
}

async function untilPods(world: SimulatedRegion, count: number): Promise<readonly string[]> {
  await world.until("its pods run", async () => (await podUids(world)).length === count);
  return podUids(world);
}

/** Past several resyncs: nothing is wrong, and nothing was repaired. */
async function settle(world: SimulatedRegion, agent: SimulatedAgent): Promise<void> {
  await world.clock.advance(200_000);
  assert.deepEqual(agent.controller.objects({ onlyTroubled: true }), []);
  assert.doesNotMatch(await world.metrics.render(), /drift_repaired_fields_total\{[^}]*\} [1-9]/);
}

test("without the sandbox a deployment runs, survives a restart without a write, and drift is repaired", async () => {
  const world = await SimulatedRegion.create({ withPods: true });
  await world.setDeployment(1, { replicas: 2 });
  const first = await world.startAgent(trusted);
  const before = await untilPods(world, 2);
  assert.equal(await runtimeClass(world), undefined);
  await settle(world, first);
  await first.stop();
  const second = await world.startAgent(trusted);
  await settle(world, second);
  assert.deepEqual(second.writes, []);
  assert.deepEqual(await podUids(world), before);

  const [live] = await world.replicaSets();
  const { name = "", namespace = "" } = live?.metadata ?? {};
  const template = { spec: { hostNetwork: true } };
  const privileged = { metadata: { name, namespace }, spec: { template } } as ReplicaSet;
  await world.api.apply(replicaSets, privileged, { fieldManager: "kubectl", force: true }, never);
  await world.until("it is repaired", async () => !(await templateOf(world)).spec?.hostNetwork);
  await world.stop();
});

test("a deployment in the sandbox keeps it when the setting is taken away, until its template changes", async () => {
  const world = await SimulatedRegion.create({ withPods: true });
  await world.setDeployment(1, { replicas: 2 });
  const strict = await world.startAgent();
  const before = await untilPods(world, 2);
  await strict.stop();

  const agent = await world.startAgent(trusted);
  await settle(world, agent);
  assert.deepEqual(agent.writes, []);
  assert.equal(await runtimeClass(world), "gvisor");

  await world.setDeployment(1, { replicas: 3 });
  const scaled = await untilPods(world, 3);
  assert.deepEqual(scaled.filter((uid) => before.includes(uid)).sort(), before);
  assert.equal(await runtimeClass(world), "gvisor");

  await world.setDeployment(1, { replicas: 3, image: "registry.example/acme/web:2" });
  await world.until("it is without", async () => (await runtimeClass(world)) === undefined);
  await settle(world, agent);
  assert.deepEqual(await podUids(world), scaled);
  await world.stop();
});

test("a deployment that comes back after a deletion by hand follows the setting", async () => {
  const world = await SimulatedRegion.create({ withPods: true });
  await world.setDeployment(1);
  const strict = await world.startAgent();
  await world.until("it is there", async () => (await world.replicaSets()).length === 1);
  await strict.stop();
  const agent = await world.startAgent(trusted);
  const [live] = await world.replicaSets();
  const { namespace = "", name = "" } = live?.metadata ?? {};
  await world.api.delete(replicaSets, { namespace, name }, {}, never);
  await world.until("it is back", async () => {
    const [again] = await world.replicaSets();
    return again !== undefined && again.metadata?.uid !== live?.metadata?.uid;
  });
  assert.equal(await runtimeClass(world), undefined);
  await settle(world, agent);
  await world.stop();
});

test("when the sandbox is turned on, templates get it with one write each, and running pods stay", async () => {
  const world = await SimulatedRegion.create({ withPods: true });
  await world.setDeployment(1, { replicas: 2 });
  const open = await world.startAgent(trusted);
  const before = await untilPods(world, 2);
  await open.stop();
  const agent = await world.startAgent();
  await world.until("it has the sandbox", async () => (await runtimeClass(world)) === "gvisor");
  await settle(world, agent);
  assert.deepEqual(
    agent.writes.map(({ kind }) => kind),
    ["ReplicaSet"],
  );
  assert.deepEqual(await podUids(world), before);
  await world.stop();
});
