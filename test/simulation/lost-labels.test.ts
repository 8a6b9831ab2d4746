// What somebody with kubectl or a tenant does to the labels that krane's watches select by: an object that leaves a watch
// is not gone. It is looked up before anything is concluded, gets its labels back, and is deleted when it has to be.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { ReportDeploymentStatusRequest } from "../../src/gen/ctrl/v1/deployment_pb.ts";
import { ciliumNetworkPolicies, pods, replicaSets } from "../../src/kube/resources.ts";
import type { KubeObject, ObjectRef, ResourceKind } from "../../src/kube/types.ts";
import { labelKeys, ownLabels } from "../../src/model/labels.ts";
import { deletionLimits } from "../support/deletion-limits.ts";
import { withoutEvents } from "./recording-kube-api.ts";
import { region, SimulatedRegion } from "./simulated-region.ts";

const never = new AbortController().signal;
const ref = { namespace: "acme", name: "web-1" };
const watchOnly = { resyncMs: 0, replayMs: 0 };
const anHourMs = 3_600_000;

async function worldWithOne(overrides: Parameters<SimulatedRegion["startAgent"]>[0] = {}) {
  const world = await SimulatedRegion.create({ withPods: true });
  await world.setDeployment(1, { replicas: 2 });
  const agent = await world.startAgent(overrides);
  await world.until("its pods run", async () => (await runningPods(world)) === 2);
  return { world, agent };
}

async function runningPods(world: SimulatedRegion): Promise<number> {
  const { items } = await world.api.list(pods, { namespace: "acme" }, never);
  return items.filter(({ status }) => status?.phase === "Running").length;
}

async function relabel(
  world: SimulatedRegion,
  kind: ResourceKind,
  at: ObjectRef,
  change: (labels: Record<string, string>) => void,
): Promise<void> {
  const live = await world.api.get(kind, at, {}, never);
  assert.ok(live?.metadata);
  const labels = { ...live.metadata.labels };
  change(labels);
  const operations = [{ op: "replace" as const, path: "/metadata/labels", value: labels }];
  await world.api.patch(kind, live, operations, { fieldManager: "kubectl-label" }, never);
}

const strip = (world: SimulatedRegion, label: string = labelKeys.managedBy) =>
  relabel(world, replicaSets, ref, (labels) => {
    delete labels[label];
  });

async function labelsOf(
  world: SimulatedRegion,
  kind: ResourceKind<KubeObject> = replicaSets,
  at: ObjectRef = ref,
) {
  return (await world.api.get(kind, at, {}, never))?.metadata?.labels ?? {};
}

async function hasOwnLabels(world: SimulatedRegion): Promise<boolean> {
  const labels = await labelsOf(world);
  return Object.entries(ownLabels("deployment")).every(([key, value]) => labels[key] === value);
}

function reportedChanges(world: SimulatedRegion): readonly (string | undefined)[] {
  return world.reported.map((report) => (report as ReportDeploymentStatusRequest).change.case);
}

function lastInstances(world: SimulatedRegion): number | undefined {
  const last = world.reported.at(-1) as ReportDeploymentStatusRequest | undefined;
  return last?.change.case === "update" ? last.change.value.instances.length : undefined;
}

for (const label of [labelKeys.managedBy, labelKeys.component])
  test(`a ReplicaSet without its ${label} label is not reported as gone, and gets the label back`, async () => {
    const { world } = await worldWithOne(watchOnly);
    const uid = (await world.api.get(replicaSets, ref, {}, never))?.metadata?.uid;
    await strip(world, label);
    await world.until("the label is back", () => hasOwnLabels(world));
    await world.clock.advance(30_000);
    assert.equal(reportedChanges(world).includes("delete"), false);
    assert.equal((await world.api.get(replicaSets, ref, {}, never))?.metadata?.uid, uid);
    assert.equal(await runningPods(world), 2);
    await world.stop();
  });

test("a ReplicaSet that lost its labels is deleted by a Delete, and reported as gone only then", async () => {
  const { world, agent } = await worldWithOne(watchOnly);
  await agent.stop();
  await strip(world);
  const again = await world.startAgent(watchOnly);
  await world.plane.admin.deleteDeployment(region, "d_1");
  await world.until("it is gone", async () => (await world.replicaSetNames()).length === 0);
  await world.until("that is reported", () => reportedChanges(world).at(-1) === "delete");
  await world.until("its pods are gone", async () => (await runningPods(world)) === 0, 120_000);
  assert.equal(again.controller.status().conflicts, 0);
  await world.stop();
});

test("a ReplicaSet that lost its labels while krane was away is found by its pods, and is not forgotten", async () => {
  const { world, agent } = await worldWithOne();
  await agent.stop();
  await strip(world);
  world.plane.faults.restoreFromEmpty(region);
  // Others that the control plane knows, or its answers would not count.
  for (let index = 2; index <= 4; index++) await world.setDeployment(index);
  await world.startAgent();
  await world.until("the label is back", () => hasOwnLabels(world), 300_000);
  await world.until(
    "it is deleted, because the control plane does not know it",
    async () => !(await world.replicaSetNames()).includes("web-1"),
    anHourMs,
  );
  await world.stop();
});

test("an object that desired state does not name gets its labels back, too", async () => {
  const { world, agent } = await worldWithOne({ ...watchOnly, resyncMs: 60_000, deletion: explicitOnly });
  world.plane.faults.restoreFromEmpty(region);
  await agent.stop();
  const again = await world.startAgent({ resyncMs: 60_000, deletion: explicitOnly });
  await world.clock.advance(5_000);
  await strip(world);
  await world.until("the label is back", () => hasOwnLabels(world));
  const relabelled = withoutEvents(again.writes).length;
  assert.equal(relabelled, 1);
  await world.clock.advance(anHourMs);
  assert.equal(withoutEvents(again.writes).length, relabelled);
  assert.deepEqual(await world.replicaSetNames(), ["web-1"]);
  await world.stop();
});

test("somebody who keeps removing the label of an object that desired state does not name is not answered each time", async () => {
  const { world, agent } = await worldWithOne({ resyncMs: 60_000, deletion: explicitOnly });
  world.plane.faults.restoreFromEmpty(region);
  await agent.stop();
  const again = await world.startAgent({ resyncMs: 60_000, deletion: explicitOnly });
  await world.clock.advance(5_000);
  for (let round = 0; round < 100; round++) {
    if ((await labelsOf(world))[labelKeys.managedBy] !== undefined) await strip(world);
    await world.clock.advance(1_000);
  }
  const writes = withoutEvents(again.writes).length;
  assert.ok(writes >= 3 && writes <= 15, `${writes} writes in 100 seconds`);
  assert.equal(reportedChanges(world).includes("delete"), false);
  await world.stop();
});

test("the policy of an environment gets its labels back, and no deployment waits meanwhile", async () => {
  const { world, agent } = await worldWithOne(watchOnly);
  const [policy] = await world.policies();
  const at = { namespace: "acme", name: policy?.metadata?.name ?? "" };
  await relabel(world, ciliumNetworkPolicies, at, (labels) => {
    delete labels[labelKeys.component];
  });
  await world.until("the label is back", async () => {
    return (await labelsOf(world, ciliumNetworkPolicies, at))[labelKeys.component] === "deployment";
  });
  assert.equal((await world.policies()).length, 1);
  assert.deepEqual(agent.controller.objects({ onlyTroubled: true }), []);
  await world.stop();
});

test("a pod is counted whatever its labels say, as long as its ReplicaSet counts it", async () => {
  const { world } = await worldWithOne(watchOnly);
  await world.until("both are reported", () => lastInstances(world) === 2);
  const { items } = await world.api.list(pods, { namespace: "acme" }, never);
  for (const { metadata } of items)
    await relabel(world, pods, { namespace: "acme", name: metadata?.name ?? "" }, (labels) => {
      delete labels[labelKeys.managedBy];
      delete labels[labelKeys.component];
    });
  await world.clock.advance(30_000);
  assert.equal(lastInstances(world), 2);
  await world.stop();
});

test("a ReplicaSet that somebody deletes is reported and made again at once", async () => {
  const { world } = await worldWithOne(watchOnly);
  const uid = (await world.api.get(replicaSets, ref, {}, never))?.metadata?.uid;
  await world.api.delete(replicaSets, ref, {}, never);
  await world.until("it is there again", async () => {
    const live = await world.api.get(replicaSets, ref, {}, never);
    return live !== undefined && live.metadata?.uid !== uid;
  });
  await world.stop();
});

const explicitOnly = { ...deletionLimits, mode: "explicit" } as const;
