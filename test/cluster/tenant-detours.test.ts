// What a namespace admin tries around krane's objects, where krane has no say, on a real API server, against an agent with the
// chart's rights and its admission policy.
import assert from "node:assert/strict";
import { after, before, type TestContext, test } from "node:test";
import type { ReplicaSet } from "kubernetes-types/apps/v1.js";
import type { Pod } from "kubernetes-types/core/v1.js";
import { Secret } from "../../src/config/secret.ts";
import type { KindControllerOptions } from "../../src/kinds/kind.ts";
import { labelKeys } from "../../src/model/labels.ts";
import { withoutEvents } from "../simulation/recording-kube-api.ts";
import { deployment, region } from "../simulation/simulated-region.ts";
import { createRegionPlane, startClusterController } from "../support/cluster-controller.ts";
import { clusterUnderTest } from "../support/cluster-under-test.ts";
import { installRights, type ServiceAccountAccess } from "../support/deployed-rights.ts";
import { eventually } from "../support/eventually.ts";

const cluster = clusterUnderTest();
const tenant = "tenant-of-acme";
let account: ServiceAccountAccess;

before(async () => {
  await cluster.empty();
  account = await installRights(cluster, ["agent", "registry", "secrets"]);
});
after(async () => {
  await account.remove();
  await cluster.empty();
});

/** A tenant with the role admin in a namespace of its own, and this many deployments of one pod each there. */
async function startTenant(t: TestContext, count: number, options: Partial<KindControllerOptions> = {}) {
  const namespace = await cluster.freshNamespace(t);
  await cluster.kubectl([
    ...["-n", namespace, "create", "rolebinding", tenant],
    ...["--clusterrole=admin", `--user=${tenant}`],
  ]);
  const plane = await createRegionPlane();
  const want = (index: number, overrides = {}) =>
    plane.admin.setDeployment(
      region,
      deployment(index, { replicas: 1, k8sNamespace: namespace, ...overrides }),
    );
  for (let index = 1; index <= count; index++) await want(index);
  const watchOnly = { resyncMs: 0, replayMs: 0, ...options };
  const startAgain = () => startClusterController(t, { cluster, account, plane }, watchOnly);
  const agent = await startAgain();
  // When the agent has stopped: the agent of the next test has the same region.
  const remains = "replicasets,pods,ciliumnetworkpolicies";
  t.after(() =>
    cluster.kubectl(["-n", namespace, "delete", remains, "--all", "--grace-period=0", "--force"]),
  );
  const instances = (index: number) => plane.admin.instances(region, `d_${index}`);
  await eventually("all run", async () => {
    for (let index = 1; index <= count; index++) assert.equal((await instances(index)).length, 1);
  });
  const statusOf = (index: number) =>
    agent.controller.objects().find(({ key }) => key === `${namespace}/web-${index}`);
  const reasonOf = (index: number) => statusOf(index)?.reason ?? "";
  return { plane, agent, want, startAgain, instances, statusOf, reasonOf, ...accessTo(namespace) };
}

function accessTo(namespace: string) {
  /** A command of the tenant; returns what it prints. */
  const asTenant = (words: readonly string[], input?: object) =>
    cluster.kubectl(
      [`--as=${tenant}`, "-n", namespace, ...words],
      input === undefined ? {} : { input: JSON.stringify(input) },
    );
  const load = async <T>(...words: string[]): Promise<T> =>
    JSON.parse(await cluster.kubectl(["-n", namespace, "get", ...words, "-o", "json"]));
  const podsOf = async (index: number) => {
    const { items } = await load<{ readonly items: readonly Pod[] }>(
      ...["pods", "-l", `${labelKeys.deploymentId}=d_${index}`],
    );
    return items.filter(({ metadata }) => metadata?.deletionTimestamp === undefined);
  };
  return {
    namespace,
    asTenant,
    load,
    loadSet: (index: number) => load<ReplicaSet>("replicaset", `web-${index}`),
    podsOf,
    podOf: async (index: number) => (await podsOf(index))[0] ?? assert.fail(`web-${index} has no pod`),
  };
}

/** A request to a subresource of a pod, which kubectl would read first. */
async function patchPod({ metadata }: Pod, subresource: string, body: object): Promise<void> {
  const path = `/api/v1/namespaces/${metadata?.namespace}/pods/${metadata?.name}/${subresource}`;
  const contentType = "application/strategic-merge-patch+json";
  const { status, body: answer } = await cluster.request({ method: "PATCH", path, body, contentType });
  assert.equal(status, 200, JSON.stringify(answer));
}

/** As `kubectl debug` does. */
const debug = (pod: Pod) =>
  patchPod(pod, "ephemeralcontainers", {
    spec: { ephemeralContainers: [{ name: "debugger", image: "registry.example/debug:1" }] },
  });

test("two PodDisruptionBudgets, with which Kubernetes evicts no pod, are told, and others are replaced", async (t) => {
  const { asTenant, podOf, reasonOf } = await startTenant(t, 2);
  for (const name of ["one", "other"])
    await asTenant([
      ...["create", "poddisruptionbudget", name],
      ...[`--selector=${labelKeys.deploymentId}=d_1`, "--min-available=1"],
    ]);
  await debug(await podOf(1));
  await eventually("that is the reason", () => {
    assert.match(
      reasonOf(1),
      /more than one PodDisruptionBudget covers it, and Kubernetes evicts no such pod/,
    );
  });
  const weak = await podOf(2);
  await debug(weak);
  await eventually("the other one is replaced", async () =>
    assert.notEqual((await podOf(2)).metadata?.uid, weak.metadata?.uid),
  );
});

test("orphaned pods are taken over while their deployment is wanted, and end with it", async (t) => {
  const { plane, agent, startAgain, asTenant, loadSet, podOf, podsOf } = await startTenant(t, 2);
  const [kept, ended] = [await podOf(1), await podOf(2)];
  await asTenant(["delete", "replicaset", "web-1", "--cascade=orphan"]);
  await eventually("the new ReplicaSet has the pod", async () => {
    const { metadata } = await podOf(1);
    assert.equal(metadata?.uid, kept.metadata?.uid);
    assert.equal(metadata?.ownerReferences?.at(0)?.uid, (await loadSet(1)).metadata?.uid);
  });
  await agent.stop();
  await asTenant(["delete", "replicaset", "web-2", "--cascade=orphan"]);
  await plane.admin.deleteDeployment(region, "d_2");
  assert.deepEqual(
    (await podsOf(2)).map(({ metadata }) => metadata?.uid),
    [ended.metadata?.uid],
  );
  const { kept: log } = await startAgain();
  await eventually("the pod has ended", async () => assert.deepEqual(await podsOf(2), []));
  await eventually("that is reported", async () =>
    assert.equal((await plane.admin.deploymentReport(region, "d_2"))?.exists, false),
  );
  const lines = log.of("deleted an object").map(({ kind, name, authority }) => [kind, name, authority]);
  assert.deepEqual(lines, [["Pod", ended.metadata?.name, "explicit delete"]]);
});

test("orphaned pods that a ReplicaSet of the tenant takes over end with their deployment", async (t) => {
  const { plane, agent, startAgain, asTenant, load, loadSet, podOf } = await startTenant(t, 1);
  const { metadata } = await podOf(1);
  const { apiVersion, kind, spec } = await loadSet(1);
  await agent.stop();
  await asTenant(["delete", "replicaset", "web-1", "--cascade=orphan"]);
  await asTenant(["create", "-f", "-"], { apiVersion, kind, metadata: { name: "mine" }, spec });
  const pod = () => load<Pod>("pod", metadata?.name ?? "");
  await eventually("it has the pod", async () =>
    assert.equal((await pod()).metadata?.ownerReferences?.at(0)?.name, "mine"),
  );
  await plane.admin.deleteDeployment(region, "d_1");
  await startAgain();
  await eventually("that is reported", async () =>
    assert.equal((await plane.admin.deploymentReport(region, "d_1"))?.exists, false),
  );
  const isRunning = async () => (await pod()).metadata?.deletionTimestamp === undefined;
  assert.equal(await isRunning().catch(() => false), false, "it runs on");
});

test("a pod of one deployment that is relabelled into another counts as outdated there", async (t) => {
  const { asTenant, podOf, instances } = await startTenant(t, 2);
  const { metadata } = await podOf(1);
  const name = metadata?.name ?? "";
  await asTenant(["label", "pod", name, `${labelKeys.deploymentId}=d_2`, "--overwrite"]);
  // The ReplicaSet of the other one takes it over, and may end its own pod as surplus.
  await eventually("it is one of the other's", async () =>
    assert.deepEqual(
      (await instances(2)).filter(({ k8sName }) => k8sName === name).map(({ outdated }) => outdated),
      [true],
    ),
  );
});

test("whoever may create tokens gets those of the pods of their namespace, and of no others", async (t) => {
  const { asTenant, podOf } = await startTenant(t, 1);
  const { metadata } = await podOf(1);
  const tokenOf = (...words: string[]) =>
    asTenant(["create", "token", "default", "--audience=krane", "--bound-object-kind=Pod", ...words]);
  const token = await tokenOf(`--bound-object-name=${metadata?.name}`);
  const claims = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString("utf8"));
  assert.equal(claims["kubernetes.io"].pod.uid, metadata?.uid);
  const elsewhere = await cluster.freshNamespace(t);
  await assert.rejects(
    tokenOf("--bound-object-name=any", `--namespace=${elsewhere}`),
    /cannot create resource "serviceaccounts\/token"/,
  );
});

test("a ReplicaSet that only has krane's marks opens no port", async (t) => {
  const { want, asTenant, load, loadSet } = await startTenant(t, 1);
  const { apiVersion, kind, metadata, spec } = await loadSet(1);
  const id = { [labelKeys.deploymentId]: "d_open" };
  const containers = [{ name: "deployment", image: "example/other:1", ports: [{ containerPort: 2222 }] }];
  const template = {
    metadata: { labels: { ...spec?.template?.metadata?.labels, ...id } },
    spec: { containers },
  };
  await asTenant(["apply", "--server-side", "--field-manager=krane", "-f", "-"], {
    ...{ apiVersion, kind },
    metadata: { name: "open", labels: { ...metadata?.labels, ...id } },
    spec: { replicas: 0, selector: { matchLabels: id }, template },
  });
  // The policy is written again for this one, after krane has seen the other.
  await want(2, { port: 9000 });
  await eventually("its port is open, and no other one", async () => {
    const { items } = await load<{ readonly items: readonly { readonly spec: unknown }[] }>(
      "ciliumnetworkpolicies",
    );
    const ports = [...JSON.stringify(items.map(({ spec }) => spec)).matchAll(/"port":"(\d+)"/g)];
    assert.deepEqual(
      ports.map(([, port]) => port),
      ["8080", "9000"],
    );
  });
});

test("an owner that is then deleted takes the ReplicaSet along, which is created again and told", async (t) => {
  const { namespace, asTenant, load, loadSet } = await startTenant(t, 1);
  const before = (await loadSet(1)).metadata?.uid;
  const owner = JSON.parse(await asTenant(["create", "configmap", "owner", "-o", "json"]));
  const reference = { apiVersion: "v1", kind: "ConfigMap", name: "owner", uid: owner.metadata.uid };
  const body = { metadata: { ownerReferences: [reference] } };
  const patch = ["patch", "replicaset", "web-1", "--type=merge", "-p", JSON.stringify(body)];
  await asTenant(patch);
  await asTenant(["delete", "configmap", "owner", "--wait=false"]);
  await eventually("it is there without that owner", async () => {
    assert.equal((await loadSet(1)).metadata?.ownerReferences, undefined);
    await assert.rejects(load("configmap", "owner"));
  });
  await eventually("what was done is told", async () => {
    const isSame = (await loadSet(1)).metadata?.uid === before;
    const reasons = await cluster.kubectl([
      ...["-n", namespace, "get", "events", "--field-selector=involvedObject.kind=ReplicaSet"],
      ...["-o", "jsonpath={.items[*].reason}"],
    ]);
    assert.match(reasons, isSame ? /Repaired/ : /Recreated/);
  });
});

test("limits of a namespace that refuse its pods are told and not fought", async (t) => {
  const { want, agent, namespace, podsOf, instances, statusOf, reasonOf } = await startTenant(t, 1);
  const limits = [{ type: "Container", max: { memory: "64Mi" } }];
  const input = JSON.stringify({
    apiVersion: "v1",
    kind: "LimitRange",
    metadata: { name: "small" },
    spec: { limits },
  });
  await cluster.kubectl(["-n", namespace, "create", "-f", "-"], { input });
  await want(1, { replicas: 2 });
  const failing = () => statusOf(1)?.failing ?? "";
  await eventually("the reason is told", () => assert.match(failing(), /maximum memory usage per Container/));
  assert.equal((await instances(1)).length, 1);
  const written = withoutEvents(agent.api.writes).length;
  await cluster.kubectl(["-n", namespace, "delete", "limitrange", "small"]);
  await eventually("it has both", async () => assert.equal((await podsOf(1)).length, 2));
  assert.equal(withoutEvents(agent.api.writes).length, written);
  assert.equal(reasonOf(1), "");
});

test("a pod whose limits somebody raises is reported with those that its node enforces", async (t) => {
  const { instances, podOf } = await startTenant(t, 1);
  const pod = await podOf(1);
  // As a kubelet reports what the container has. Kubernetes resizes no container whose node does not.
  const enforced = { limits: { cpu: "250m", memory: "256Mi" } };
  const [status] = pod.status?.containerStatuses ?? [];
  const report = (restartCount: number) =>
    patchPod(pod, "status", {
      status: { containerStatuses: [{ ...status, restartCount, resources: enforced }] },
    });
  await report(0);
  // Without the requests: equal ones would change the pod's QoS class, which Kubernetes forbids.
  const resources = { limits: { cpu: "64", memory: "640Gi" } };
  await patchPod(pod, "resize", { spec: { containers: [{ name: "deployment", resources }] } });
  await report(1);
  await eventually("the status is reported", async () => assert.equal((await instances(1))[0]?.restarts, 1));
  const [{ cpuMillicores, memoryMib } = assert.fail("no instance")] = await instances(1);
  assert.deepEqual([cpuMillicores, memoryMib], [250n, 256n]);
});

test("an Event that a tenant creates in krane's name hides nothing from krane's own status", async (t) => {
  const { namespace, asTenant, reasonOf } = await startTenant(t, 1);
  const involvedObject = { apiVersion: "apps/v1", kind: "ReplicaSet", namespace, name: "web-1" };
  await asTenant(["create", "-f", "-"], {
    ...{ apiVersion: "v1", kind: "Event", involvedObject },
    metadata: { name: "web-1.contested-missing" },
    ...{
      type: "Normal",
      reason: "Deleted",
      message: "krane deleted this object",
      source: { component: "krane" },
    },
  });
  await eventually("krane pauses and says why", async () => {
    await asTenant(["delete", "replicaset", "web-1", "--ignore-not-found"]);
    assert.match(reasonOf(1), /^an unknown client keeps deleting ReplicaSet \S+\/web-1 since 20/);
  });
});

const registry = { host: "registry.example", username: "robot", password: new Secret("of-the-registry") };
const marks = { "app.kubernetes.io/managed-by": "krane", "app.kubernetes.io/component": "pull-secret" };

for (const [what, secret, reason] of [
  ["that is not krane's", { type: "Opaque" }, /^Secret \S+\/krane-registry is not krane's: /],
  [
    "of another type with krane's marks",
    { type: "Opaque", metadata: { labels: marks } },
    /^apply secrets \S+\/krane-registry: 422 Invalid/,
  ],
  [
    "with krane's marks that cannot be changed",
    {
      ...{ type: "kubernetes.io/dockerconfigjson", immutable: true, metadata: { labels: marks } },
      data: { ".dockerconfigjson": Buffer.from("{}").toString("base64") },
    },
    /^apply secrets \S+\/krane-registry: 422 Invalid/,
  ],
] as const)
  test(`a pull secret ${what}, made before krane's, is told, and gets no password`, async (t) => {
    const { want, asTenant, load, reasonOf } = await startTenant(t, 0, { registry });
    const metadata = { ...("metadata" in secret && secret.metadata), name: "krane-registry" };
    const manifest = { apiVersion: "v1", kind: "Secret", ...secret, metadata };
    await asTenant(["apply", "--server-side", "--field-manager=krane", "-f", "-"], manifest);
    await want(1);
    await eventually("that is the reason", () => assert.match(reasonOf(1), reason));
    const found = await load<{ readonly data?: Readonly<Record<string, string>> }>(
      "secret",
      "krane-registry",
    );
    assert.doesNotMatch(atob(found.data?.[".dockerconfigjson"] ?? ""), /of-the-registry/);
  });
