// What a namespace admin gets who removes everything at once that shows an object to be krane's: seal, labels, annotations
// and the record of its field manager. krane removes none of its promises with them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import type { ReplicaSet } from "kubernetes-types/apps/v1.js";
import { createInProcessTransport } from "../../src/dev/in-process-transport.ts";
import type { ReportDeploymentStatusRequest } from "../../src/gen/ctrl/v1/deployment_pb.ts";
import { objectPath } from "../../src/kube/client.ts";
import { ciliumNetworkPolicies, pods, replicaSets } from "../../src/kube/resources.ts";
import type { KubeObject } from "../../src/kube/types.ts";
import { annotationKeys } from "../../src/model/labels.ts";
import { putObject } from "../support/hand-edits.ts";
import { createTestSeal, otherSealKey, testSeal } from "../support/test-seal.ts";
import { region, SimulatedRegion } from "./simulated-region.ts";

const never = new AbortController().signal;
const ref = { namespace: "acme", name: "web-1" };
const otherSeal = createTestSeal({ keys: [otherSealKey] });
const watchOnly = { resyncMs: 0, replayMs: 0 };

async function worldWithOne() {
  const world = await SimulatedRegion.create({ withPods: true });
  await world.setDeployment(1, { replicas: 2 });
  const agent = await world.startAgent(watchOnly);
  await world.until("its pods run", async () => (await runningPods(world)) === 2);
  return { world, agent };
}

async function runningPods(world: SimulatedRegion): Promise<number> {
  const { items } = await world.api.list(pods, { namespace: "acme" }, never);
  return items.filter(({ status }) => status?.phase === "Running").length;
}

async function live(world: SimulatedRegion): Promise<ReplicaSet> {
  return (await world.api.get(replicaSets, ref, {}, never)) ?? assert.fail("it is gone");
}

/** One write without anything that names krane, and a template that shares the namespaces of its node. */
async function strip(world: SimulatedRegion, annotations?: Record<string, string>): Promise<void> {
  const transport = createInProcessTransport(world.server, { userAgent: "kubectl" });
  const { metadata, spec, ...rest } = await live(world);
  const { annotations: _, labels: __, ...kept } = metadata ?? {};
  const template = { ...spec?.template, spec: { ...spec?.template?.spec, hostPID: true } };
  const stripped = {
    ...rest,
    metadata: { ...kept, ...(annotations && { annotations }), managedFields: [{}] },
    spec: { ...spec, template },
  };
  assert.ok(await putObject(transport, objectPath(replicaSets, ref), stripped as KubeObject, never));
  await transport.close();
}

function trouble({ controller }: Awaited<ReturnType<typeof worldWithOne>>["agent"]): string {
  return controller.objects({ onlyTroubled: true })[0]?.reason ?? "";
}

function reportedChanges(world: SimulatedRegion): readonly (string | undefined)[] {
  return world.reported.map((report) => (report as ReportDeploymentStatusRequest).change.case);
}

test("a ReplicaSet that lost seal, labels and field manager at once is repaired", async () => {
  const { world } = await worldWithOne();
  const { metadata } = await live(world);
  await strip(world);
  await world.until("it is sealed and repaired", async () => {
    const now = await live(world);
    return testSeal.read(replicaSets, now.metadata).kind === "valid" && !now.spec?.template?.spec?.hostPID;
  });
  assert.equal((await live(world)).metadata?.uid, metadata?.uid);
  assert.equal(reportedChanges(world).includes("delete"), false);
  await world.stop();
});

for (const [what, text] of [
  ["broken", testSeal.write({ kind: replicaSets, namespace: "acme", name: "web-2" }, {})],
  ["unknown", otherSeal.write({ kind: replicaSets, ...ref }, {})],
] as const)
  test(`a ReplicaSet that got a seal that is ${what}, and no mark, is not reported as gone, nor called deleted`, async () => {
    const { world, agent } = await worldWithOne();
    await agent.stop();
    await strip(world, { [annotationKeys.seal]: text });
    const again = await world.startAgent(watchOnly);
    await world.until("it is told", () => /is not krane's: /.test(trouble(again)));
    await world.plane.admin.deleteDeployment(region, "d_1");
    await world.until("so it is of the Delete", () => /is not deleted: /.test(trouble(again)));
    await world.clock.advance(60_000);
    assert.equal(await runningPods(world), 2);
    assert.equal(reportedChanges(world).includes("delete"), false);
    await again.stop();
    await world.startAgent(watchOnly);
    await world.clock.advance(60_000);
    assert.equal(reportedChanges(world).includes("delete"), false);
    await world.stop();
  });

for (const when of ["while krane runs", "while no krane runs"])
  test(`a ReplicaSet that lost them ${when} is deleted by a Delete, and reported as gone only then`, async () => {
    const { world, agent } = await worldWithOne();
    const isRunning = when === "while krane runs";
    if (!isRunning) await agent.stop();
    await strip(world);
    await world.plane.admin.deleteDeployment(region, "d_1");
    if (!isRunning) await world.startAgent(watchOnly);
    await world.until("that is reported", () => reportedChanges(world).at(-1) === "delete");
    assert.deepEqual(await world.replicaSetNames(), []);
    await world.until("its pods are gone", async () => (await runningPods(world)) === 0, 120_000);
    await world.stop();
  });

test("a ReplicaSet of a deleted deployment that is put back with its seal is deleted again", async () => {
  const { world, agent } = await worldWithOne();
  const { metadata, ...rest } = await live(world);
  const { name = "", labels = {}, annotations = {} } = metadata ?? {};
  await world.plane.admin.deleteDeployment(region, "d_1");
  await world.until("it is gone", async () => (await world.replicaSetNames()).length === 0);
  const copy = { ...rest, metadata: { name, namespace: "acme", labels, annotations } };
  for (const isRunning of [true, false]) {
    if (!isRunning) await agent.stop();
    await world.api.create(replicaSets, copy, { fieldManager: "kubectl" }, never);
    if (!isRunning) await world.startAgent(watchOnly);
    await world.until("it is gone again", async () => (await world.replicaSetNames()).length === 0);
  }
  await world.stop();
});

test("a ReplicaSet that is made again with its seal, and a selector that nobody can change, is told and ends with a Delete", async () => {
  const { world, agent } = await worldWithOne();
  const { metadata, spec, ...rest } = await live(world);
  await agent.stop();
  await world.api.delete(replicaSets, ref, { propagation: "Background" }, never);
  await world.until("its pods have ended", async () => (await runningPods(world)) === 0);
  const extra = { "example.com/extra": "1" };
  const selector = { matchLabels: { ...spec?.selector.matchLabels, ...extra } };
  const labels = { ...spec?.template?.metadata?.labels, ...extra };
  const template = {
    ...spec?.template,
    metadata: { ...spec?.template?.metadata, labels },
    spec: { ...spec?.template?.spec, hostPID: true },
  };
  const { labels: marks = {}, annotations = {} } = metadata ?? {};
  const copy = {
    ...rest,
    metadata: { ...ref, labels: marks, annotations },
    spec: { ...spec, selector, template },
  };
  await world.api.create(replicaSets, copy as ReplicaSet, { fieldManager: "krane" }, never);
  const again = await world.startAgent(watchOnly);
  await world.until("that is told", () => /spec\.selector: .*field is immutable/.test(trouble(again)));
  await world.clock.advance(120_000);
  assert.equal(await runningPods(world), 0, "less isolated pods run");
  await world.plane.admin.deleteDeployment(region, "d_1");
  await world.until("it is gone", async () => !(await world.api.get(replicaSets, ref, {}, never)));
  await world.until("that is reported", () => reportedChanges(world).at(-1) === "delete");
  await world.stop();
});

test("a policy that lost them, and admits everybody, is repaired", async () => {
  const { world } = await worldWithOne();
  const [policy = assert.fail("no policy")] = await world.policies();
  const { metadata, spec, ...rest } = policy as KubeObject & { readonly spec?: object };
  const { namespace = "", name = "", annotations: _, labels: __, ...kept } = metadata ?? {};
  const at = { namespace, name };
  const transport = createInProcessTransport(world.server, { userAgent: "kubectl" });
  const stripped = {
    ...rest,
    metadata: { ...kept, ...at, managedFields: [{}] },
    spec: { ...spec, ingress: [{}] },
  };
  assert.ok(await putObject(transport, objectPath(ciliumNetworkPolicies, at), stripped, never));
  await transport.close();
  await world.until("it is as before", async () => {
    const now = await world.api.get(ciliumNetworkPolicies, at, {}, never);
    const isSealed = testSeal.read(ciliumNetworkPolicies, now?.metadata).kind === "valid";
    return isSealed && isDeepStrictEqual(now?.["spec"], spec) && now?.metadata?.uid === metadata?.uid;
  });
  await world.stop();
});
