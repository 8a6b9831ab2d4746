import { testSeal } from "../support/test-seal.ts";
// The manifests of deployments meet a real API server: what krane writes is accepted to the last field,
// makes pods that start, and takes over what an older agent left without touching a pod.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import type { ReplicaSet } from "kubernetes-types/apps/v1.js";
import type { Pod } from "kubernetes-types/core/v1.js";
import { ReportDeploymentStatusRequest_Update_Instance_Status as Status } from "../../src/gen/ctrl/v1/deployment_pb.ts";
import { type ObservedPod, observeDeployment } from "../../src/kinds/deployment/observed.ts";
import { desiredReplicaSet } from "../../src/kinds/deployment/pod-template.ts";
import { projectPod, projectReplicaSet } from "../../src/kinds/deployment/projections.ts";
import type { KubeObject } from "../../src/kube/types.ts";
import { judgeOwnership } from "../../src/model/ownership.ts";
import type { ApiAnswer } from "../support/cluster/api-request.ts";
import { clusterUnderTest } from "../support/cluster-under-test.ts";
import { deploymentSpec } from "../support/deployment-messages.ts";
import { eventually } from "../support/eventually.ts";
import { replicaSetOfOlderAgent } from "../support/older-agent.ts";

const cluster = clusterUnderTest();
const golden = fileURLToPath(new URL("../../testdata/deployment/", import.meta.url));
const namespaces = new Set<string>();

after(async () => {
  for (const name of namespaces) {
    await cluster.request({ method: "DELETE", path: `/api/v1/namespaces/${name}` });
  }
});

const groups: Readonly<Record<string, string>> = {
  Namespace: "/api/v1",
  Secret: "/api/v1",
  CiliumNetworkPolicy: "/apis/cilium.io/v2",
  ReplicaSet: "/apis/apps/v1",
};

function pathOf({ kind = "", metadata = {} }: KubeObject): string {
  const resource = kind === "CiliumNetworkPolicy" ? "ciliumnetworkpolicies" : `${kind.toLowerCase()}s`;
  const place = metadata.namespace === undefined ? "" : `/namespaces/${metadata.namespace}`;
  return `${groups[kind]}${place}/${resource}/${metadata.name}`;
}

function apply(manifest: KubeObject, force = false): Promise<ApiAnswer> {
  return cluster.request({
    method: "PATCH",
    path: `${pathOf(manifest)}?fieldManager=krane&fieldValidation=Strict&force=${force}`,
    contentType: "application/apply-patch+yaml",
    body: manifest,
  });
}

async function applied<T extends KubeObject>(manifest: T, force = false): Promise<T> {
  const answer = await apply(manifest, force);
  assert.ok(
    answer.status === 200 || answer.status === 201,
    `${answer.status} ${JSON.stringify(answer.body)}`,
  );
  return answer.body as T;
}

async function podsOf(replicaSet: ReplicaSet): Promise<readonly Pod[]> {
  const { namespace } = replicaSet.metadata ?? {};
  const answer = await cluster.request({ path: `/api/v1/namespaces/${namespace}/pods` });
  const { items } = answer.body as { items: readonly Pod[] };
  return items.filter(({ metadata }) => metadata?.ownerReferences?.[0]?.uid === replicaSet.metadata?.uid);
}

function uidsOf(pods: readonly Pod[]): readonly (string | undefined)[] {
  return pods.map(({ metadata }) => metadata?.uid).sort();
}

function observedPod(pod: Pod): ObservedPod {
  return { ...projectPod(pod), name: pod.metadata?.name ?? "" };
}

/** All pods that it asks for, once each of them is a running instance in krane's eyes. */
function runningPods(replicaSet: ReplicaSet): Promise<readonly Pod[]> {
  return eventually(`the pods of ${replicaSet.metadata?.name} run`, async () => {
    const pods = await podsOf(replicaSet);
    const { update } = observeDeployment(projectReplicaSet(replicaSet, testSeal), pods.map(observedPod));
    const running = update.instances.filter(({ status }) => status === Status.RUNNING);
    assert.equal(running.length, replicaSet.spec?.replicas);
    return pods;
  });
}

for (const name of readdirSync(golden).sort()) {
  test(`the manifests of ${name} are accepted, and their pods start`, async () => {
    const manifests: readonly KubeObject[] = JSON.parse(
      readFileSync(`${golden}${name}/manifests.json`, "utf8"),
    );
    const live: KubeObject[] = [];
    for (const manifest of manifests) {
      if (manifest.kind === "Namespace") namespaces.add(manifest.metadata?.name ?? "");
      live.push(await applied(manifest));
    }
    for (const object of live)
      assert.equal(judgeOwnership({ kind: "missing" }, object.metadata).kind, "unsealed");

    for (const [index, manifest] of manifests.entries()) {
      const again = await applied(manifest);
      assert.equal(writeOf(again), writeOf(live[index]), "applied twice, written once");
    }
    const replicaSet = live.at(-1) as ReplicaSet;
    assert.equal(replicaSet.kind, "ReplicaSet");
    await runningPods(replicaSet);
  });
}

/** What changes with every write: the version or, where a controller writes a status too, the generation. */
function writeOf(object: KubeObject | undefined): string | undefined {
  const { generation, resourceVersion } = object?.metadata ?? {};
  return generation?.toString() ?? resourceVersion;
}

test("a field that Kubernetes does not know would have been refused", async (t) => {
  const k8sNamespace = await cluster.freshNamespace(t);
  const manifest = desiredReplicaSet(deploymentSpec({ k8sNamespace }), { secrets: { audience: "krane" } });
  const mistyped = { ...manifest, spec: { ...manifest.spec, minReadySecond: 30 } };
  assert.notEqual((await apply(mistyped)).status, 201);
  assert.equal((await apply(manifest)).status, 201);
});

test("what krane sees of a running pod is what was asked for", async (t) => {
  const k8sNamespace = await cluster.freshNamespace(t);
  const spec = deploymentSpec({
    k8sNamespace,
    replicas: 2,
    port: 3000,
    cpuMillicores: 1_500n,
    memoryMib: 1_024n,
  });
  const live = await applied(desiredReplicaSet(spec, { secrets: { audience: "krane" } }));
  const pods = await runningPods(live);

  const { update, counts } = observeDeployment(projectReplicaSet(live, testSeal), pods.map(observedPod));
  assert.deepEqual(counts, { wanted: 2, total: 2, ready: 2, failed: 0, ofOlderTemplate: 0 });
  for (const instance of update.instances) {
    assert.match(
      instance.address,
      new RegExp(`^10(-\\d+){3}\\.${k8sNamespace}\\.pod\\.cluster\\.local:3000$`),
    );
    assert.deepEqual([instance.cpuMillicores, instance.memoryMib], [1_500n, 1_024n]);
  }
});

test("a ReplicaSet as an older agent leaves it is taken over, and its pods live on", async (t) => {
  const namespace = await cluster.freshNamespace(t);
  const original = await applied(replicaSetOfOlderAgent(namespace));
  const before = await runningPods(original);

  const seen = projectReplicaSet(original, testSeal);
  assert.deepEqual(
    [seen.ownership.kind, seen.deploymentId, seen.manifestHash],
    ["unsealed", "d_1a2B3c4D", undefined],
  );

  const spec = deploymentSpec({ k8sNamespace: namespace, replicas: 2, port: 8080 });
  const manifest = desiredReplicaSet(spec, { secrets: { audience: "krane" } });
  const uid = original.metadata?.uid ?? "";
  const ours = await applied({ ...manifest, metadata: { ...manifest.metadata, uid } }, true);
  assert.equal(ours.metadata?.uid, uid, "the same object");
  assert.equal(
    projectReplicaSet(ours, testSeal).manifestHash,
    manifest.metadata?.annotations?.["krane.unkey.com/manifest-hash"],
  );
  assert.equal(ours.spec?.template?.spec?.automountServiceAccountToken, false);

  await eventually("the controller has acted on the change", async () => {
    const now = (await cluster.request({ path: pathOf(manifest) })).body as ReplicaSet;
    assert.equal(now.status?.observedGeneration, ours.metadata?.generation);
  });
  const after = await runningPods(ours);
  assert.deepEqual(uidsOf(after), uidsOf(before));
  const { counts } = observeDeployment(projectReplicaSet(ours, testSeal), after.map(observedPod));
  assert.deepEqual([counts.ready, counts.ofOlderTemplate], [2, 2]);

  const scaled = desiredReplicaSet({ ...spec, replicas: 3 }, { secrets: { audience: "krane" } });
  const grown = await runningPods(await applied(scaled, true));
  const grownCounts = observeDeployment(projectReplicaSet(ours, testSeal), grown.map(observedPod)).counts;
  assert.deepEqual(
    [grown.length, grownCounts.ofOlderTemplate],
    [3, 2],
    "only new pods have the new template",
  );
});

test("a name that is given to another deployment is refused by Kubernetes and seen by krane before", async (t) => {
  const k8sNamespace = await cluster.freshNamespace(t);
  const settings = { secrets: { audience: "krane" } };
  const live = await applied(desiredReplicaSet(deploymentSpec({ k8sNamespace, replicas: 0 }), settings));
  const other = deploymentSpec({ k8sNamespace, replicas: 0, deploymentId: "d_other" });
  assert.notEqual(projectReplicaSet(live, testSeal).deploymentId, other.deploymentId);
  assert.equal((await apply(desiredReplicaSet(other, settings), true)).status, 422);
});
