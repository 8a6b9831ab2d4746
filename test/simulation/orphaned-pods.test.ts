// Pods whose ReplicaSet somebody deleted with --cascade=orphan: they are taken over, or they end with their deployment, and
// nothing is called gone while they run.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Pod } from "kubernetes-types/core/v1.js";
import { podDisruptionBudgets, pods, replicaSets } from "../../src/kube/resources.ts";
import { labelKeys } from "../../src/model/labels.ts";
import { region, SimulatedRegion } from "./simulated-region.ts";

const never = new AbortController().signal;
const ref = { namespace: "acme", name: "web-1" };

async function createWorld() {
  const world = await SimulatedRegion.create({ withPods: true });
  await world.setDeployment(1, { replicas: 2 });
  const agent = await world.startAgent();
  const running = async () => (await world.list(pods)).filter(({ status }) => status?.phase === "Running");
  const isReported = async () => (await world.plane.admin.deploymentReport(region, "d_1"))?.exists === true;
  await world.until("its pods run", async () => (await running()).length === 2 && (await isReported()));
  return { world, agent, running, isReported };
}

const uidsOf = (live: readonly Pod[]) => live.map(({ metadata }) => metadata?.uid).sort();

async function orphan(world: SimulatedRegion): Promise<void> {
  await world.api.delete(replicaSets, ref, { propagation: "Orphan" }, never);
  await world.until("it is gone", async () => {
    const live = await world.list(pods);
    return live.every(({ metadata }) => metadata?.ownerReferences === undefined);
  });
}

/** Orphaned and ordered to be deleted while no agent runs. */
async function createOrphans() {
  const { world, agent, running, isReported } = await createWorld();
  await agent.stop();
  await orphan(world);
  await world.plane.admin.deleteDeployment(region, "d_1");
  return { world, running, isReported };
}

test("orphaned pods of a deployment that is wanted are taken over by its new ReplicaSet", async () => {
  const { world, running } = await createWorld();
  const before = uidsOf(await running());
  await world.api.delete(replicaSets, ref, { propagation: "Orphan" }, never);
  await world.until("they have their owner", async () => {
    const uid = (await world.api.get(replicaSets, ref, {}, never))?.metadata?.uid;
    const live = await running();
    return uid !== undefined && live.every(({ metadata }) => metadata?.ownerReferences?.at(0)?.uid === uid);
  });
  assert.deepEqual(uidsOf(await running()), before);
  await world.stop();
});

test("orphaned pods end with their deployment, and no others", async () => {
  const { world, running, isReported } = await createOrphans();
  const [own = assert.fail("no pod")] = await running();
  // Nothing but its name speaks for krane.
  const labels = { [labelKeys.deploymentId]: "d_1" };
  const metadata = { namespace: "acme", name: "other", generateName: "web-1-", labels };
  const { containers = [] } = own.spec ?? {};
  await world.api.create(pods, { metadata, spec: { containers } }, {}, never);
  await world.startAgent();
  await world.until("it is reported as gone", async () => !(await isReported()), 120_000);
  const isEnding = ({ metadata }: Pod) => metadata?.deletionTimestamp !== undefined;
  const left = (await world.list(pods)).filter((pod) => !isEnding(pod));
  assert.deepEqual(
    left.map(({ metadata }) => metadata?.name),
    ["other"],
  );
  await world.until("they have ended", async () => (await world.list(pods)).length === 1);
  await world.stop();
});

test("orphaned pods that another ReplicaSet has taken over end with their deployment too, and only they", async () => {
  const { world, running, isReported } = await createOrphans();
  const before = uidsOf(await running());
  const [{ metadata, spec } = assert.fail("no pod")] = await running();
  const { labels = {}, annotations = {} } = metadata ?? {};
  const selector = { matchLabels: { [labelKeys.deploymentId]: "d_1" } };
  const template = { metadata: { labels, annotations }, spec: { containers: spec?.containers ?? [] } };
  const other = { metadata: { namespace: "acme", name: "mine" }, spec: { replicas: 2, selector, template } };
  const { metadata: created } = await world.api.create(replicaSets, other, {}, never);
  await world.until("it has the pods", async () =>
    (await running()).every(({ metadata }) => metadata?.ownerReferences?.at(0)?.uid === created?.uid),
  );
  await world.startAgent();
  await world.until("it is reported as gone", async () => !(await isReported()), 120_000);
  const left = async () => uidsOf(await world.list(pods));
  await world.until("it has made others, and only they are left", async () => {
    const uids = await left();
    return uids.length === 2 && uids.every((uid) => !before.includes(uid));
  });
  const own = await left();
  await world.clock.advance(120_000);
  assert.deepEqual(await left(), own);
  await world.stop();
});

test("a PodDisruptionBudget that keeps them is named, and nothing is called gone meanwhile", async () => {
  const { world, running, isReported } = await createOrphans();
  const selector = { matchLabels: { [labelKeys.deploymentId]: "d_1" } };
  const budget = {
    metadata: { namespace: "acme", name: "mine" },
    spec: { minAvailable: 2, selector },
  };
  await world.api.create(podDisruptionBudgets, budget, {}, never);
  await world.clock.advance(5_000);
  const agent = await world.startAgent();
  await world.clock.advance(120_000);
  assert.equal((await running()).length, 2);
  assert.ok(await isReported());
  const [troubled] = agent.controller.objects({ onlyTroubled: true });
  assert.match(troubled?.reason ?? "", /runs without its ReplicaSet; .*The disruption budget mine needs 2/);
  await world.api.delete(podDisruptionBudgets, { namespace: "acme", name: "mine" }, {}, never);
  await world.until("they end", async () => (await running()).length === 0, 120_000);
  await world.until("it is reported as gone", async () => !(await isReported()), 120_000);
  await world.stop();
});
