import { services } from "../../src/kube/resources.ts";
import { testSeal } from "../support/test-seal.ts";
// The manifests of sentinels meet a real API server: what krane writes is accepted to the last field and
// kept as it was sent, the controllers of Kubernetes make of it what krane means, and what an older agent
// left is taken over in place.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { before, test } from "node:test";
import { fileURLToPath } from "node:url";
import type { ReplicaSet } from "kubernetes-types/apps/v1.js";
import { Health } from "../../src/gen/ctrl/v1/sentinel_pb.ts";
import {
  desiredGossipPolicy,
  desiredGossipService,
  desiredSentinelBudget,
  desiredSentinelDeployment,
  desiredSentinelService,
} from "../../src/kinds/sentinel/desired.ts";
import { sentinelSelection } from "../../src/kinds/sentinel/identity.ts";
import { observeSentinel } from "../../src/kinds/sentinel/observed.ts";
import { projectSentinelCompanion, projectSentinelDeployment } from "../../src/kinds/sentinel/projections.ts";
import type { KubeObject } from "../../src/kube/types.ts";
import { desiredNamespace } from "../../src/model/namespace.ts";
import { judgeOwnership } from "../../src/model/ownership.ts";
import { clusterUnderTest } from "../support/cluster-under-test.ts";
import { eventually } from "../support/eventually.ts";
import { assertKeptAsSent, createManifestApplier, writeOf } from "../support/manifest-applier.ts";
import { companionsOfOlderAgent, deploymentOfOlderAgent } from "../support/older-sentinel.ts";
import { sentinelSpec } from "../support/sentinel-messages.ts";

const cluster = clusterUnderTest();
const { apply, applied, takenOver, get, delete: remove } = createManifestApplier(cluster);
const golden = fileURLToPath(new URL("../../testdata/sentinel/", import.meta.url));
const uidInGolden = "11111111-2222-4333-8444-555555555555";
const settings = { region: "local.dev" };
// A pod counts as available 30 s after it is ready.
const rollOut = { deadlineMs: 120_000 };

// The namespace is the same for all, so what other tests left in it has to go.
before(async () => {
  await cluster.empty();
  await applied(desiredNamespace("sentinel"));
});

function uidOf(object: KubeObject | undefined): string {
  return object?.metadata?.uid ?? "";
}

for (const name of readdirSync(golden).sort()) {
  test(`the manifests of ${name} are accepted, and kept as they were sent`, async () => {
    const text = readFileSync(`${golden}${name}/manifests.json`, "utf8");
    let uid = uidInGolden;
    const live: KubeObject[] = [];
    const manifestsFor = (owner: string): readonly KubeObject[] =>
      JSON.parse(text.replaceAll(uidInGolden, owner));
    for (const index of manifestsFor(uid).keys()) {
      const manifest = manifestsFor(uid)[index] ?? {};
      const object = await applied(manifest);
      if (object.kind === "Deployment") uid = uidOf(object);
      assert.equal(judgeOwnership({ kind: "missing" }, object.metadata).kind, "unsealed");
      live.push(object);
    }
    assert.notEqual(uid, uidInGolden);
    for (const [index, manifest] of manifestsFor(uid).entries()) {
      const again = await applied(manifest);
      assert.equal(writeOf(again), writeOf(live[index]), "applied twice, written once");
      assertKeptAsSent(again, manifest);
    }
  });
}

test("a field that Kubernetes does not know would have been refused", async () => {
  const manifest = desiredSentinelService(sentinelSpec({ k8sName: "mistyped" }), uidInGolden);
  const mistyped = { ...manifest, spec: { ...manifest.spec, selectors: {} } };
  const { status } = await apply(mistyped as KubeObject);
  assert.ok(status >= 400, String(status));
});

test("a sentinel becomes healthy, is reported with its image once all pods run it, and pauses", async () => {
  const overrides = { k8sName: "healthy", sentinelId: "se_healthy", replicas: 2 };
  const manifest = desiredSentinelDeployment(sentinelSpec(overrides), settings);
  const observed = async () =>
    observeSentinel(projectSentinelDeployment((await get(manifest)) ?? {}, testSeal));
  const first = observeSentinel(projectSentinelDeployment(await applied(manifest), testSeal));
  assert.deepEqual([first.update.health, first.update.runningImage], [Health.UNHEALTHY, ""]);

  await eventually(
    "both pods are available",
    async () => {
      const { update, counts } = await observed();
      assert.deepEqual(
        [update.health, update.availableReplicas, counts.converged],
        [Health.HEALTHY, 2, true],
      );
      assert.equal(update.runningImage, "registry.example/platform/sentinel:1");
    },
    rollOut,
  );

  const image = "registry.example/platform/sentinel:2";
  await applied(desiredSentinelDeployment(sentinelSpec({ ...overrides, image }), settings));
  const rolling = await eventually("the roll-out has begun", async () => {
    const { update, counts } = await observed();
    assert.ok(counts.updated > 0 && counts.total > 2, "not yet");
    return update;
  });
  assert.deepEqual(
    [rolling.health, rolling.availableReplicas, rolling.runningImage],
    [Health.HEALTHY, 2, ""],
  );

  await applied(desiredSentinelDeployment(sentinelSpec({ ...overrides, image, replicas: 0 }), settings));
  await eventually("it is paused", async () => {
    const { update, counts } = await observed();
    assert.deepEqual([update.health, update.availableReplicas, counts.total], [Health.PAUSED, 0, 0]);
    assert.equal(update.runningImage, image);
  });
});

test("the budget follows the count of replicas, and keeps nothing of the one before", async () => {
  const specOf = (replicas: number) => sentinelSpec({ k8sName: "budget", sentinelId: "se_budget", replicas });
  const uid = uidOf(await applied(desiredSentinelDeployment(specOf(0), settings)));
  for (const replicas of [0, 1, 3, 1, 0]) {
    const manifest = desiredSentinelBudget(specOf(replicas), uid);
    const { spec } = await applied(manifest);
    assert.deepEqual(spec, manifest.spec);
  }
});

test("with the Deployment goes what it owns, and what the environment shares stays", async () => {
  const spec = sentinelSpec({ k8sName: "owned", sentinelId: "se_owned", replicas: 0 });
  const deployment = desiredSentinelDeployment(spec, settings);
  const uid = uidOf(await applied(deployment));
  const owned = [desiredSentinelService(spec, uid), desiredSentinelBudget(spec, uid)];
  const shared = [desiredGossipService(spec), desiredGossipPolicy(spec)];
  for (const manifest of [...owned, ...shared]) await applied(manifest as KubeObject);

  await remove(deployment);
  await eventually("what it owned is gone", async () => {
    for (const manifest of owned) assert.equal(await get(manifest as KubeObject), undefined);
  });
  for (const manifest of shared) assert.ok(await get(manifest as KubeObject));
});

test("a Deployment that was created again gets its companions back under its own uid", async () => {
  const spec = sentinelSpec({ k8sName: "again", sentinelId: "se_again", replicas: 0 });
  const deployment = desiredSentinelDeployment(spec, settings);
  const first = uidOf(await applied(deployment));
  await applied(desiredSentinelService(spec, first));

  await remove(deployment);
  await eventually("it is gone", async () => assert.equal(await get(deployment), undefined));
  const second = uidOf(await applied(deployment));
  assert.notEqual(second, first);
  // Kubernetes collects the previous Service, sooner or later; in either order, this is the result.
  const manifest = desiredSentinelService(spec, second);
  await eventually("the Service is there and has one owner", async () => {
    const again = await applied(manifest, true);
    assert.deepEqual(projectSentinelCompanion(again, services, testSeal).ownerUids, [second]);
    assertKeptAsSent(again, manifest);
  });
});

test("a name that is given to another sentinel is refused by Kubernetes and seen by krane before", async () => {
  const overrides = { k8sName: "taken", sentinelId: "se_first", replicas: 0 };
  const live = await applied(desiredSentinelDeployment(sentinelSpec(overrides), settings));
  assert.equal(projectSentinelDeployment(live, testSeal).sentinelId, "se_first");
  const other = sentinelSpec({ ...overrides, sentinelId: "se_second" });
  assert.equal((await apply(desiredSentinelDeployment(other, settings), true)).status, 422);
});

test("what an older agent left is taken over in place, with one rolling update and nothing deleted", async () => {
  const deployment = await applied(deploymentOfOlderAgent());
  const uid = uidOf(deployment);
  const companions = companionsOfOlderAgent(uid);
  const service = await applied(companions.service);
  const budget = await applied(companions.budget);
  const gossipService = await applied(companions.gossipService);
  const gossipPolicy = await applied(companions.gossipPolicy);

  const seen = projectSentinelDeployment(deployment, testSeal);
  assert.deepEqual(
    [seen.ownership.kind, seen.sentinelId, seen.manifestHash],
    ["unsealed", "se_1a2B3c4D", undefined],
  );
  for (const object of [service, budget, gossipService, gossipPolicy] as readonly KubeObject[]) {
    const { ownership, sentinelName, sentinelId, manifestHash } = projectSentinelCompanion(
      object,
      services,
      testSeal,
    );
    assert.deepEqual(
      [ownership.kind, sentinelName, sentinelId, manifestHash],
      ["unsealed", "gate", "se_1a2B3c4D", undefined],
    );
  }
  assert.ok((await selected("services")).includes("gate-gossip-lan"), "krane's watch shows it");

  const spec = sentinelSpec({ replicas: 1 });
  const manifest = desiredSentinelDeployment(spec, settings);
  const ours = await takenOver(manifest, deployment);
  assertKeptAsSent(ours, manifest);
  for (const [wanted, live] of [
    [desiredSentinelService(spec, uid), service],
    [desiredSentinelBudget(spec, uid), budget],
    [desiredGossipService(spec), gossipService],
    [desiredGossipPolicy(spec), gossipPolicy],
  ] as readonly (readonly [KubeObject, KubeObject])[]) {
    const now = await takenOver(wanted, live);
    assert.equal(uidOf(now), uidOf(live), "the same object");
    assert.equal(now.metadata?.labels?.["app.kubernetes.io/managed-by"], "krane");
    assertKeptAsSent(now, wanted);
  }
  assert.equal(uidOf(ours), uid, "the same object");
  assert.equal((await get(desiredSentinelService(spec, uid)))?.spec?.clusterIP, service.spec?.clusterIP);

  await eventually("the controller has acted on the change", async () => {
    const now = await get(manifest);
    assert.equal(now?.status?.observedGeneration, now?.metadata?.generation);
    assert.equal(now?.metadata?.annotations?.["deployment.kubernetes.io/revision"], "2");
  });
  assert.equal((await templatesOf(uid)).length, 2, "one rolling update");
  assert.equal(writeOf(await takenOver(manifest, deployment)), writeOf(ours), "and then nothing more");
});

async function selected(plural: string): Promise<readonly (string | undefined)[]> {
  const query = `labelSelector=${encodeURIComponent(sentinelSelection.labelSelector)}`;
  const { body } = await cluster.request({ path: `/api/v1/namespaces/sentinel/${plural}?${query}` });
  return (body as { items: readonly KubeObject[] }).items.map(({ metadata }) => metadata?.name);
}

/** One ReplicaSet for every template that a Deployment has had. */
async function templatesOf(deploymentUid: string): Promise<readonly ReplicaSet[]> {
  const { body } = await cluster.request({ path: "/apis/apps/v1/namespaces/sentinel/replicasets" });
  const { items } = body as { items: readonly ReplicaSet[] };
  return items.filter(({ metadata }) => metadata?.ownerReferences?.[0]?.uid === deploymentUid);
}
