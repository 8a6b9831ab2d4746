// Whose the five objects are, and what follows from it (K4): deletes with proof, orphans, conflicts and
// take-overs.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Deployment } from "kubernetes-types/apps/v1.js";
import { createInProcessTransport } from "../../src/dev/in-process-transport.ts";
import { ObjectStatus_Outcome } from "../../src/gen/krane/v1/agent_pb.ts";
import { desiredSentinelTemplate, sentinelConfiguration } from "../../src/kinds/sentinel/pod-template.ts";
import type { KubeApi } from "../../src/kube/api.ts";
import { objectPath } from "../../src/kube/client.ts";
import {
  appsDeployments,
  ciliumNetworkPolicies,
  namespaces,
  podDisruptionBudgets,
  replicaSets,
  services,
} from "../../src/kube/resources.ts";
import type { KubeObject, ObjectMeta, ObjectRef, ResourceKind } from "../../src/kube/types.ts";
import { annotationKeys } from "../../src/model/labels.ts";
import { hashOf } from "../../src/model/manifest-hash.ts";
import { putObject } from "../support/hand-edits.ts";
import { companionsOfOlderAgent, deploymentOfOlderAgent } from "../support/older-sentinel.ts";
import { applySentinel, sentinelSpec } from "../support/sentinel-messages.ts";
import { withoutEvents } from "./recording-kube-api.ts";
import {
  isSettled,
  liveDeployment,
  namesOf,
  objectNames,
  partsOf,
  setSentinel,
  startSentinelAgent,
  watchOnly,
} from "./sentinel-agents.ts";
import { region, SimulatedRegion } from "./simulated-region.ts";

const never = new AbortController().signal;
const gate = { namespace: "sentinel", name: "gate-1" };
const gossip = { namespace: "sentinel", name: "gate-1-gossip-lan" };

async function settledWorld(options: Parameters<typeof SimulatedRegion.create>[0] = {}) {
  const world = await SimulatedRegion.create(options);
  await setSentinel(world, 2);
  await setSentinel(world, 1);
  const agent = await startSentinelAgent(world);
  await world.until("it is settled", () => isSettled(agent, 2n));
  await world.clock.advance(1_000);
  return { world, agent };
}

/** Writes other metadata, as `kubectl edit` does. */
async function edit(
  world: SimulatedRegion,
  kind: ResourceKind,
  ref: ObjectRef,
  change: (metadata: ObjectMeta) => ObjectMeta,
): Promise<void> {
  const transport = createInProcessTransport(world.server);
  const live = (await world.api.get<KubeObject>(kind, ref, {}, never)) ?? {};
  const edited = { ...live, metadata: change(live.metadata ?? {}) };
  assert.ok(await putObject(transport, objectPath(kind, ref), edited, never));
  await transport.close();
}

async function uidOf(world: SimulatedRegion, kind: ResourceKind, ref: ObjectRef) {
  return (await world.api.get(kind, ref, {}, never))?.metadata?.uid;
}

const parts = partsOf(1);

describe("a delete leaves nothing, whichever of the five are gone already", () => {
  for (let mask = 0; mask < 2 ** parts.length; mask++) {
    const missing = parts.filter((_, bit) => (mask >> bit) % 2 === 1);
    test(`without ${missing.map(({ kind, ref }) => `${kind.kind} ${ref.name}`).join(", ") || "any loss"}`, async () => {
      const { world, agent } = await settledWorld();
      await agent.stop();
      for (const { kind, ref } of missing) await world.api.delete(kind, ref, {}, never);
      const version = await world.plane.admin.deleteSentinel(region, "se_1");
      const next = await startSentinelAgent(world);
      await world.until("it is settled", () => isSettled(next, version));
      assert.deepEqual(await objectNames(world), namesOf(2));
      assert.equal(withoutEvents(next.writes).length, parts.length - missing.length);
      await world.stop();
    });
  }
});

test("a delete finds what lost its owner reference, or the labels that it is found by", async () => {
  const { world, agent } = await settledWorld();
  await agent.stop();
  for (const kind of [services, podDisruptionBudgets])
    await edit(world, kind, gate, (metadata) => ({ ...metadata, ownerReferences: [] }));
  const unlabelled = ({ labels = {}, ...metadata }: ObjectMeta): ObjectMeta => {
    const { "unkey.com/sentinel.id": _, ...rest } = labels;
    return { ...metadata, labels: rest };
  };
  for (const { kind, ref } of parts.slice(1)) await edit(world, kind, ref, unlabelled);
  const version = await world.plane.admin.deleteSentinel(region, "se_1");
  const next = await startSentinelAgent(world);
  await world.until("it is settled", () => isSettled(next, version));
  assert.deepEqual(await objectNames(world), namesOf(2));
  await world.stop();
});

test("an old order to delete what is long gone costs one look-up, in case it only lost its labels", async () => {
  const { world, agent } = await settledWorld();
  const version = await world.plane.admin.deleteSentinel(region, "se_1");
  await world.until("it is settled", () => isSettled(agent, version));
  await agent.stop();
  let reads = 0;
  const wrapApi = (api: KubeApi): KubeApi => ({
    ...api,
    get(...args) {
      reads += 1;
      return api.get(...args);
    },
  });
  const next = await startSentinelAgent(world, { wrapApi });
  await world.until("it is settled", () => isSettled(next, version));
  await world.clock.advance(120_000);
  assert.deepEqual([reads, next.writes], [1, []]);
  await world.stop();
});

for (const isDeletedByHand of [false, true])
  test(`a companion that a finalizer holds does not keep the sentinel running, ${isDeletedByHand ? "deleted by hand before" : "deleted with it"}`, async () => {
    const { world, agent } = await settledWorld();
    await edit(world, services, gossip, (metadata) => ({ ...metadata, finalizers: ["example.com/hold"] }));
    if (isDeletedByHand) await world.api.delete(services, gossip, {}, never);
    await world.clock.advance(1_000);
    const version = await world.plane.admin.deleteSentinel(region, "se_1");
    await world.until(
      "the rest is gone",
      async () =>
        String(await objectNames(world)) === String([...namesOf(2), "Service gate-1-gossip-lan"].sort()),
    );
    const [waiting] = agent.controller.objects().filter(({ key }) => key === "sentinel/gate-1");
    assert.match(waiting?.reason ?? "", /Service sentinel\/gate-1-gossip-lan is still being deleted/);
    assert.ok(!isSettled(agent, version));
    await edit(world, services, gossip, (metadata) => ({ ...metadata, finalizers: [] }));
    await world.until("it is settled", () => isSettled(agent, version));
    assert.deepEqual(await objectNames(world), namesOf(2));
    await world.stop();
  });

test("companions without a Deployment are asked for by their id: unknown ones go, wanted ones are completed", async () => {
  const { world, agent } = await settledWorld();
  await setSentinel(world, 3);
  await world.until("all are settled", () => isSettled(agent, 3n));
  await agent.stop();
  for (const index of [1, 2])
    await world.api.delete(appsDeployments, { ...gate, name: `gate-${index}` }, {}, never);
  await world.plane.admin.forgetSentinel(region, "se_1");
  world.plane.faults.pauseStreams();
  const next = await startSentinelAgent(world);
  assert.deepEqual(
    next.controller.objects().map(({ key, id }) => [key, id]),
    [
      ["sentinel/gate-1", "se_1"],
      ["sentinel/gate-2", "se_2"],
      ["sentinel/gate-3", "se_3"],
    ],
  );
  await world.until("the wanted one is whole", async () => (await liveDeployment(world, 2)) !== undefined);
  await world.until(
    "the unknown one is gone",
    async () => String(await objectNames(world)) === String([...namesOf(2), ...namesOf(3)].sort()),
    900_000,
  );
  await world.stop();
});

test("a sentinel of which one object is too young is not deleted by halves for its absence", async () => {
  const { world, agent } = await settledWorld();
  await world.clock.advance(295_000);
  await world.api.delete(services, gate, {}, never);
  await world.until("it is back", async () => (await objectNames(world)).length === 10);
  await world.plane.admin.forgetSentinel(region, "se_1");
  await world.clock.advance(240_000);
  assert.deepEqual(await objectNames(world), [...namesOf(1), ...namesOf(2)].sort());
  assert.equal(agent.writes.filter(({ verb }) => verb === "delete").length, 0);
  assert.equal(agent.controller.blockedDeletions().length, 1);
  await world.until(
    "it is gone in one go",
    async () => String(await objectNames(world)) === String(namesOf(2)),
    300_000,
  );
  assert.equal(agent.writes.filter(({ verb }) => verb === "delete").length, 5);
  await world.stop();
});

test("an edited id label is drift; the id of the Deployment's selector is what counts", async () => {
  const { world } = await settledWorld();
  const uids = await Promise.all(parts.map(({ kind, ref }) => uidOf(world, kind, ref)));
  for (const { kind, ref } of parts)
    await edit(world, kind, ref, ({ labels, ...metadata }) => ({
      ...metadata,
      labels: { ...labels, "unkey.com/sentinel.id": "se_2" },
    }));
  await world.until("all labels are back", async () => {
    const live = await Promise.all(parts.map(({ kind, ref }) => world.api.get(kind, ref, {}, never)));
    return live.every((object) => object?.metadata?.labels?.["unkey.com/sentinel.id"] === "se_1");
  });
  assert.deepEqual(await Promise.all(parts.map(({ kind, ref }) => uidOf(world, kind, ref))), uids);
  await world.stop();
});

test("a name that is given to another id is a conflict: nothing of the first is written or deleted", async () => {
  const { world, agent } = await settledWorld();
  await agent.stop();
  const uids = await Promise.all(parts.map(({ kind, ref }) => uidOf(world, kind, ref)));
  world.plane.faults.restoreFromEmpty(region);
  await setSentinel(world, 1, { sentinelId: "se_other", environmentId: "env_other" });
  const next = await startSentinelAgent(world);
  const conflict = () =>
    next.controller.objects({ onlyTroubled: true }).find(({ key }) => key === "sentinel/gate-1");
  await world.until("the conflict is seen", () => conflict()?.outcome === ObjectStatus_Outcome.CONFLICT);
  assert.match(conflict()?.reason ?? "", /the live sentinel id is "se_1", but "se_other" is desired/);
  await world.plane.admin.deleteSentinel(region, "se_other");
  await world.clock.advance(120_000);
  assert.equal(conflict()?.outcome, ObjectStatus_Outcome.CONFLICT);
  assert.deepEqual(await Promise.all(parts.map(({ kind, ref }) => uidOf(world, kind, ref))), uids);
  assert.deepEqual(
    next.writes.filter(({ kind }) => kind !== "Event"),
    [],
  );
  await world.stop();
});

test("a Service of somebody else under the name is a conflict, and the other objects are in order", async () => {
  const world = await SimulatedRegion.create();
  await world.api.create(namespaces, { metadata: { name: "sentinel" } }, {}, never);
  await world.api.create(services, { metadata: gate, spec: { ports: [{ port: 80 }] } }, {}, never);
  const before = await world.api.get(services, gate, {}, never);
  await setSentinel(world, 1);
  const agent = await startSentinelAgent(world, watchOnly);
  await world.until("the conflict is seen", () => {
    const [object] = agent.controller.objects({ onlyTroubled: true });
    return object?.outcome === ObjectStatus_Outcome.CONFLICT;
  });
  assert.deepEqual(await world.api.get(services, gate, {}, never), before);
  assert.deepEqual(await objectNames(world), namesOf(1));
  const version = await world.plane.admin.deleteSentinel(region, "se_1");
  await world.until("the rest is deleted", () => isSettled(agent, version));
  assert.deepEqual(await objectNames(world), ["Service gate-1"]);
  await world.stop();
});

test("what an older agent left is taken over in place: one rolling update, nothing deleted", async () => {
  const world = await SimulatedRegion.create({ withPods: true });
  const byOlder = { fieldManager: "krane", force: false };
  await world.api.create(namespaces, { metadata: { name: "sentinel" } }, {}, never);
  const { object: left } = await world.api.apply(appsDeployments, deploymentOfOlderAgent(), byOlder, never);
  const companions = companionsOfOlderAgent(left.metadata?.uid ?? "");
  await world.api.apply(services, companions.service, byOlder, never);
  await world.api.apply(podDisruptionBudgets, companions.budget, byOlder, never);
  await world.api.apply(services, companions.gossipService, byOlder, never);
  await world.api.apply(ciliumNetworkPolicies, companions.gossipPolicy, byOlder, never);
  const older = { namespace: "sentinel", name: "gate" };
  const olderParts = parts.map(({ kind, ref }) => ({
    kind,
    ref: { ...ref, name: ref.name.replace("gate-1", "gate") },
  }));
  const uids = () => Promise.all(olderParts.map(({ kind, ref }) => uidOf(world, kind, ref)));
  const before = await uids();
  const address = (await world.api.get(services, older, {}, never))?.spec?.clusterIP;
  await world.until("its pod runs", async () => {
    return (await world.api.get(appsDeployments, older, {}, never))?.status?.availableReplicas === 1;
  });

  const version = await world.plane.admin.setSentinel(region, applySentinel());
  const agent = await startSentinelAgent(world);
  await world.until("it is settled", () => isSettled(agent, version));
  await world.until("it is reported", async () => {
    return (await world.plane.admin.sentinelStatus(region, "se_1a2B3c4D"))?.runningImage !== "";
  });
  assert.deepEqual(await uids(), before);
  assert.equal((await world.api.get(services, older, {}, never))?.spec?.clusterIP, address);
  assert.deepEqual(
    agent.writes.map(({ verb, kind }) => `${verb} ${kind}`),
    [
      "apply Deployment",
      "apply Service",
      "apply PodDisruptionBudget",
      "apply Service",
      "apply CiliumNetworkPolicy",
    ],
  );
  assert.equal((await world.list(replicaSets)).length, 2, "one rolling update");
  for (const { kind, ref } of olderParts) {
    const labels = (await world.api.get(kind, ref, {}, never))?.metadata?.labels;
    assert.equal(labels?.["app.kubernetes.io/managed-by"], "krane", kind.kind);
  }
  await world.stop();
});

describe("the template of the original", () => {
  const older = { namespace: "sentinel", name: "gate" };
  const keptMark = "krane.unkey.com/kept-template";
  const changed = { cpuMillicores: 300n };
  const configuration = sentinelConfiguration(sentinelSpec(), "local.dev").replaceAll(/^/gm, "\t");
  const liveTemplate = async (world: SimulatedRegion) =>
    (await world.api.get(appsDeployments, older, {}, never))?.spec?.template ?? assert.fail("it is missing");

  /** A sentinel of the original that krane has taken over. */
  async function adoptedWorld() {
    const world = await SimulatedRegion.create();
    await world.api.create(namespaces, { metadata: { name: "sentinel" } }, {}, never);
    const left = deploymentOfOlderAgent(configuration);
    await world.api.apply(appsDeployments, left, { fieldManager: "krane", force: false }, never);
    const version = await world.plane.admin.setSentinel(region, applySentinel());
    const agent = await startSentinelAgent(world);
    await world.until("it is settled", () => isSettled(agent, version));
    return { world, agent, original: await liveTemplate(world) };
  }

  test("is kept at the take-over, also after a restart, until the spec changes", async () => {
    const { world, agent, original } = await adoptedWorld();
    assert.equal(original.metadata?.labels?.["app.kubernetes.io/managed-by"], undefined);
    await agent.stop();
    const next = await startSentinelAgent(world);
    await world.clock.advance(120_000);
    assert.deepEqual([next.writes, await liveTemplate(world)], [[], original]);
    await world.plane.admin.setSentinel(region, applySentinel(changed));
    await world.until(
      "it has krane's own",
      async () => (await liveTemplate(world)).spec?.automountServiceAccountToken === false,
    );
    await world.stop();
  });

  for (const withSeal of [true, false])
    test(`cannot be put back by hand, ${withSeal ? "with the mark of an earlier krane" : "also without the seal"}`, async () => {
      const { world, agent, original } = await adoptedWorld();
      const version = await world.plane.admin.setSentinel(region, applySentinel(changed));
      await world.until("it is settled", () => isSettled(agent, version));
      const own = await liveTemplate(world);
      const live = (await world.api.get<KubeObject>(appsDeployments, older, {}, never)) ?? {};
      const { [annotationKeys.seal]: seal = "", ...annotations } = live.metadata?.annotations ?? {};
      const transport = createInProcessTransport(world.server);
      const hash = hashOf(desiredSentinelTemplate(sentinelSpec(changed), { region: "local.dev" }));
      const marks = withSeal ? { [keptMark]: hash, [annotationKeys.seal]: seal } : {};
      const edited = {
        ...live,
        metadata: { ...live.metadata, annotations: { ...annotations, ...marks } },
        spec: { ...(live as Deployment).spec, template: original },
      };
      assert.ok(await putObject(transport, objectPath(appsDeployments, older), edited, never));
      await transport.close();
      await world.clock.advance(60_000);
      assert.deepEqual(await liveTemplate(world), own);
      await world.stop();
    });
});
