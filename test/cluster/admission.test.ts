// What a stolen token of the agent is good for: from krane's service account the API server takes everything that krane
// writes, and refuses what an attacker would write to get further than that.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { ReplicaSet } from "kubernetes-types/apps/v1.js";
import type { KubeObject } from "../../src/kube/types.ts";
import { clusterUnderTest } from "../support/cluster-under-test.ts";
import { installRights, type ServiceAccountAccess } from "../support/deployed-rights.ts";
import { createManifestApplier, pathOf } from "../support/manifest-applier.ts";
import { companionsOfOlderAgent, deploymentOfOlderAgent } from "../support/older-sentinel.ts";
import { projectFiles, readProjectFile } from "../support/project-files.ts";

const cluster = clusterUnderTest();
const administrator = createManifestApplier(cluster);
const golden = projectFiles(/^testdata\/(deployment|sentinel|policy|route)\/[\w-]+\/manifests\.json$/).map(
  (name) => ({
    name,
    manifests: JSON.parse(readProjectFile(name).replace("other-audience", "krane")) as readonly KubeObject[],
  }),
);
const label = { "app.kubernetes.io/managed-by": "krane" };
let account: ServiceAccountAccess;

before(async () => {
  await cluster.empty();
  account = await installRights(cluster, ["agent", "registry", "secrets", "scheduler"]);
  const namespaces = golden.flatMap(({ manifests }) => manifests.map(({ metadata }) => metadata?.namespace));
  for (const name of new Set(namespaces.filter((one) => one !== undefined && one !== "sentinel")))
    await cluster.kubectl(["create", "namespace", name ?? ""]);
});
after(async () => {
  await account.remove();
  await cluster.empty();
});

/** As krane's service account, and without effect: "taken", or why not. */
async function answerTo(method: "apply" | "delete", object: KubeObject): Promise<string> {
  const creates = object.kind === "Namespace";
  const path = pathOf(object);
  const collection = path.slice(0, path.lastIndexOf("/"));
  const { status, body } = await cluster.request({
    method: method === "delete" ? "DELETE" : creates ? "POST" : "PATCH",
    path: `${creates ? collection : path}?dryRun=All${method === "delete" ? "" : "&fieldManager=krane&force=true"}`,
    ...(method === "apply" && { body: object }),
    ...(method === "apply" && !creates && { contentType: "application/apply-patch+yaml" }),
    token: account.token,
  });
  if (status === 200 || status === 201) return "taken";
  // What is there already was not refused.
  if (status === 409 && creates) return "taken";
  return (body as { readonly message: string }).message;
}

for (const { name, manifests } of golden)
  test(`krane may write ${name}`, async () => {
    // HTTPRoutes are a right of their own, with the Gateway in the policy: http-routes.test.ts.
    for (const manifest of manifests.filter(({ kind }) => kind !== "HTTPRoute"))
      assert.equal(await answerTo("apply", manifest), "taken", manifest.kind);
  });

test("krane may change and delete what it made, and what older agents left", async () => {
  const { gossipService, gossipPolicy } = companionsOfOlderAgent("");
  const kinds = ["ReplicaSet", "Deployment", "CiliumNetworkPolicy"];
  const made = golden.flatMap(({ manifests }) => manifests.filter(({ kind = "" }) => kinds.includes(kind)));
  const one = kinds.map((wanted) => made.find(({ kind }) => kind === wanted) ?? assert.fail(wanted));
  for (const object of [...one, gossipService, gossipPolicy] as readonly KubeObject[]) {
    await administrator.applied(object);
    assert.equal(await answerTo("apply", withLabels(object, label)), "taken", object.kind);
    assert.equal(await answerTo("delete", object), "taken", object.kind);
    await administrator.delete(object);
  }
});

test("krane may keep the template of a sentinel of the original, and may not write such a template", async () => {
  const left = deploymentOfOlderAgent();
  const forbidden = /pods must/;
  assert.match(await answerTo("apply", left), forbidden);
  await administrator.applied(left);
  assert.equal(await answerTo("apply", withLabels(left, label)), "taken");
  const [container] = left.spec?.template.spec?.containers ?? [];
  const image = "registry.example/platform/sentinel:2";
  const template = { ...left.spec?.template, spec: { containers: [{ ...container, image }] } };
  assert.match(
    await answerTo("apply", { ...left, spec: { ...left.spec, template } } as KubeObject),
    forbidden,
  );
  await administrator.delete(left);
});

const record = {
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: {
    namespace: "krane",
    name: "krane-order-1",
    labels: { ...label, "app.kubernetes.io/component": "order" },
  },
} as const;

test("krane may write and delete the records of orders in its own namespace", async (t) => {
  assert.equal(await answerTo("apply", record), "taken");
  await administrator.applied(record);
  t.after(() => administrator.delete(record));
  assert.equal(await answerTo("apply", { ...record, data: { key: "acme/web" } } as KubeObject), "taken");
  assert.equal(await answerTo("delete", record), "taken");
});

test("krane may not write any other ConfigMap, least of all that of its own configuration", async (t) => {
  const named = (metadata: object): KubeObject => ({
    ...record,
    metadata: { ...record.metadata, ...metadata },
  });
  const onlyRecords = /writes only ConfigMaps that record orders, in its own namespace/;
  assert.match(await answerTo("apply", named({ name: "other" })), onlyRecords);
  assert.match(await answerTo("apply", named({ labels: label })), onlyRecords);
  const configuration = named({ name: "krane", labels: { "app.kubernetes.io/managed-by": "Helm" } });
  await administrator.applied(configuration);
  t.after(() => administrator.delete(configuration));
  assert.match(await answerTo("apply", named({ name: "krane" })), onlyRecords);
  assert.match(await answerTo("delete", configuration), onlyRecords);
  const disguised = named({ labels: { ...record.metadata.labels, "app.kubernetes.io/managed-by": "Helm" } });
  await administrator.applied(disguised);
  t.after(() => administrator.delete(disguised));
  assert.match(await answerTo("delete", disguised), /only objects that already have its label/);
});

function withLabels(object: KubeObject, labels: Readonly<Record<string, string>>): KubeObject {
  return { ...object, metadata: { ...object.metadata, labels: { ...object.metadata?.labels, ...labels } } };
}

/** A golden manifest with a few fields changed; the steps of a path are parted by a bar, and a list is entered at its first item. */
function forged(kind: string, changes: Readonly<Record<string, unknown>>): KubeObject {
  const all = golden.flatMap(({ manifests }) => manifests);
  const object = structuredClone(all.find((one) => one.kind === kind) ?? assert.fail(kind));
  for (const [path, value] of Object.entries(changes)) {
    const steps = path.split("|");
    const last = steps.pop() ?? "";
    let place = object as Record<string, unknown>;
    for (const step of steps) {
      place[step] ??= {};
      const next = place[step] as Record<string, unknown> | readonly Record<string, unknown>[];
      place = (Array.isArray(next) ? next[0] : next) as Record<string, unknown>;
    }
    place[last] = value;
  }
  return object;
}

const spec = "spec|template|spec";
const container = `${spec}|containers`;
const podLabels = "spec|template|metadata|labels";
// An API server may be told to refuse privileged containers by itself, and that of the tests is.
const powers = { capabilities: { add: ["SYS_ADMIN"] } };
const tokenFor = (audience: string | undefined) => {
  const source = { serviceAccountToken: { path: "token", audience } };
  return { [`${spec}|volumes`]: [{ name: "a", projected: { sources: [source] } }] };
};
const token = { serviceAccountToken: { path: "token", audience: "krane" } };

const node = /must not share resources of their node or have privileges/;
const identity = /must use the default service account and mount no token of it/;
const place = /does not write to its own namespace or those of Kubernetes/;
const sandbox = /must run in the sandbox gvisor/;
const volumes = /volumes other than one with a token for krane/;
const nodes = /only on nodes for their kind/;
const secrets = /Secrets other than krane-registry, krane-registry-\* and those of sentinels/;
const registry = /only Secrets named krane-registry/;
const labels = /pods must have krane's labels for their kind/;
const inside = /must not be reachable from outside the cluster/;

type Attack = readonly [
  what: string,
  kind: string,
  changes: Readonly<Record<string, unknown>>,
  reason: RegExp,
];

const attacks: readonly Attack[] = [
  [
    "a Secret that Kubernetes fills with an administrator's token",
    "Secret",
    {
      type: "kubernetes.io/service-account-token",
      "metadata|annotations": { "kubernetes.io/service-account.name": "default" },
      data: {},
    },
    registry,
  ],
  ["a Secret of an ordinary type", "Secret", { type: "Opaque" }, registry],
  ["a Secret among those of the system", "Secret", { "metadata|namespace": "kube-system" }, place],
  ["a Secret beside krane's own", "Secret", { "metadata|namespace": "krane" }, place],
  ["pods in kube-system", "ReplicaSet", { "metadata|namespace": "kube-system" }, place],
  ["pods in default", "ReplicaSet", { "metadata|namespace": "default" }, place],
  ["pods beside krane", "ReplicaSet", { "metadata|namespace": "krane" }, place],
  ["pods of deployments among sentinels", "ReplicaSet", { "metadata|namespace": "sentinel" }, place],
  ["pods of another service account", "ReplicaSet", { [`${spec}|serviceAccountName`]: "admin" }, identity],
  ["the same by the field of old", "ReplicaSet", { [`${spec}|serviceAccount`]: "admin" }, identity],
  ["pods with a token", "ReplicaSet", { [`${spec}|automountServiceAccountToken`]: true }, identity],
  [
    "pods that say nothing of tokens",
    "ReplicaSet",
    { [`${spec}|automountServiceAccountToken`]: undefined },
    identity,
  ],
  ["pods without the sandbox", "ReplicaSet", { [`${spec}|runtimeClassName`]: undefined }, sandbox],
  ["pods of another runtime", "ReplicaSet", { [`${spec}|runtimeClassName`]: "runc" }, sandbox],
  [
    "pods that change the sandbox",
    "ReplicaSet",
    { "spec|template|metadata|annotations|dev.gvisor.flag.network": "host" },
    sandbox,
  ],
  [
    "pods with the files of the node",
    "ReplicaSet",
    { [`${spec}|volumes`]: [{ name: "root", hostPath: { path: "/" } }] },
    volumes,
  ],
  [
    "pods with a Secret as a volume",
    "ReplicaSet",
    { [`${spec}|volumes`]: [{ name: "a", secret: { secretName: "a" } }] },
    volumes,
  ],
  [
    "pods with a Secret beside the token",
    "ReplicaSet",
    { [`${spec}|volumes`]: [{ name: "a", projected: { sources: [token, { secret: { name: "a" } }] } }] },
    volumes,
  ],
  ["pods with a token for Kubernetes", "ReplicaSet", tokenFor(undefined), volumes],
  ["pods with a token for a cloud", "ReplicaSet", tokenFor("sts.amazonaws.com"), volumes],
  [
    "pods with a Secret as a variable",
    "ReplicaSet",
    { [`${container}|env`]: [{ name: "A", valueFrom: { secretKeyRef: { name: "a", key: "a" } } }] },
    secrets,
  ],
  [
    "pods with a Secret as variables",
    "ReplicaSet",
    { [`${container}|envFrom`]: [{ secretRef: { name: "database" } }] },
    secrets,
  ],
  [
    "pods with somebody's pull secret",
    "ReplicaSet",
    { [`${spec}|imagePullSecrets`]: [{ name: "a" }] },
    secrets,
  ],
  [
    "pods with a pull secret that only begins alike",
    "ReplicaSet",
    { [`${spec}|imagePullSecrets`]: [{ name: "krane-registry-acme" }, { name: "krane-registrya" }] },
    secrets,
  ],
  [
    "sentinels with the pull secret of a deployment",
    "Deployment",
    { [`${spec}|imagePullSecrets`]: [{ name: "krane-registry-acme" }] },
    secrets,
  ],
  ["pods in the network of the node", "ReplicaSet", { [`${spec}|hostNetwork`]: true }, node],
  ["pods among the processes of the node", "ReplicaSet", { [`${spec}|hostPID`]: true }, node],
  ["pods with the memory of the node", "ReplicaSet", { [`${spec}|hostIPC`]: true }, node],
  [
    "pods on a port of the node",
    "ReplicaSet",
    { [`${container}|ports`]: [{ containerPort: 80, hostPort: 80 }] },
    node,
  ],
  ["pods with privileges", "ReplicaSet", { [`${container}|securityContext`]: powers }, node],
  [
    "pods with settings of the kernel",
    "ReplicaSet",
    { [`${spec}|securityContext`]: { sysctls: [{ name: "net.ipv4.ip_forward", value: "1" }] } },
    node,
  ],
  [
    "pods with one more container",
    "ReplicaSet",
    { [`${spec}|initContainers`]: [{ name: "a", image: "a", securityContext: powers }] },
    /pods must have exactly one container/,
  ],
  ["pods on every node", "ReplicaSet", { [`${spec}|tolerations`]: [{ operator: "Exists" }] }, nodes],
  ["pods on one node", "ReplicaSet", { [`${spec}|nodeName`]: "control-plane" }, nodes],
  [
    "pods that push others out",
    "ReplicaSet",
    { [`${spec}|priorityClassName`]: "system-node-critical" },
    nodes,
  ],
  [
    "a selector for the pods of others",
    "ReplicaSet",
    { "spec|selector": { matchExpressions: [{ key: "app", operator: "DoesNotExist" }] } },
    labels,
  ],
  ["pods that pose as others", "ReplicaSet", { [`${podLabels}|app`]: "payments" }, labels],
  [
    "pods that network policies do not see",
    "ReplicaSet",
    { [`${podLabels}|app.kubernetes.io/component`]: "tool" },
    labels,
  ],
  [
    "sentinels of another service account",
    "Deployment",
    { [`${spec}|serviceAccountName`]: "admin" },
    identity,
  ],
  [
    "sentinels with the files of the node",
    "Deployment",
    { [`${spec}|volumes`]: [{ name: "root", hostPath: { path: "/" } }] },
    volumes,
  ],
  ["sentinels in the network of the node", "Deployment", { [`${spec}|hostNetwork`]: true }, node],
  ["sentinels with privileges", "Deployment", { [`${container}|securityContext`]: powers }, node],
  [
    "sentinels with Secrets of others",
    "Deployment",
    { [`${container}|envFrom`]: [{ secretRef: { name: "a" } }] },
    secrets,
  ],
  ["sentinels on every node", "Deployment", { [`${spec}|tolerations`]: [{ operator: "Exists" }] }, nodes],
  [
    "a namespace that allows everything",
    "Namespace",
    { "metadata|labels|pod-security.kubernetes.io/enforce": "privileged" },
    /only its own labels on a namespace/,
  ],
  ["a namespace of the system", "Namespace", { "metadata|name": "kube-mine" }, place],
  ["a policy for the system", "CiliumNetworkPolicy", { "metadata|namespace": "kube-system" }, place],
  ["a policy for krane", "CiliumNetworkPolicy", { "metadata|namespace": "krane" }, place],
  [
    "a policy that is nobody's",
    "CiliumNetworkPolicy",
    { "metadata|labels": {} },
    /writes only objects that have its label/,
  ],
  ["a Service that takes over an address", "Service", { "spec|externalIPs": ["192.0.2.1"] }, inside],
  ["a Service for the world", "Service", { "spec|type": "LoadBalancer" }, inside],
  [
    "a Service for the pods of others",
    "Service",
    { "metadata|namespace": "acme", "spec|selector": { app: "theirs" } },
    /outside the sentinel namespace must select pods of deployments/,
  ],
];

for (const [what, kind, changes, reason] of attacks)
  test(`krane may not write ${what}`, async () => {
    assert.match(await answerTo("apply", forged(kind, changes)), reason);
  });

for (const [what, kind, namespace] of [
  ["a ReplicaSet", "ReplicaSet", "acme"],
  ["a policy", "CiliumNetworkPolicy", "acme"],
  ["a Deployment beside the sentinels", "Deployment", "sentinel"],
  ["a ReplicaSet of the system", "ReplicaSet", "kube-system"],
] as const)
  test(`krane may neither take nor delete ${what} of somebody else`, async (t) => {
    const own = forged(kind, { "metadata|namespace": namespace, "metadata|name": "of-others" });
    const foreign = withLabels(own, { "app.kubernetes.io/managed-by": "Helm" });
    await administrator.applied(foreign);
    t.after(() => administrator.delete(foreign));
    const reason =
      namespace === "kube-system" ? place : /changes and deletes only objects that already have its label/;
    assert.match(await answerTo("apply", own), reason);
    assert.match(await answerTo("delete", own), reason);
  });

test("of a ReplicaSet that others have weakened, krane may lower the replicas and nothing else", async (t) => {
  const namespace = await cluster.freshNamespace(t);
  const found = golden.flatMap(({ manifests }) => manifests).find(({ kind }) => kind === "ReplicaSet");
  const { metadata, spec } = (found ?? assert.fail("no ReplicaSet")) as ReplicaSet;
  const template = { ...spec?.template, spec: { ...spec?.template?.spec, hostPID: true } };
  const weakened = { apiVersion: "apps/v1", kind: "ReplicaSet", metadata: { ...metadata, namespace } };
  const collection = `/apis/apps/v1/namespaces/${namespace}/replicasets`;
  const body = { ...weakened, spec: { ...spec, replicas: 2, template } };
  assert.equal((await cluster.request({ method: "POST", path: collection, body })).status, 201);
  const patch = async (change: object) => {
    const path = `${collection}/${metadata?.name}?dryRun=All`;
    const contentType = "application/merge-patch+json";
    const asked = { method: "PATCH", path, contentType, body: change, token: account.token } as const;
    return (await cluster.request(asked)).status;
  };
  assert.equal(await patch({ spec: { replicas: 1 } }), 200);
  for (const change of [
    { replicas: 3 },
    { replicas: 2, minReadySeconds: 1 },
    { replicas: 1, template: { spec: { hostIPC: true } } },
  ])
    assert.equal(await patch({ spec: change }), 422, JSON.stringify(change));
});

test("requests of other clients are not checked", async () => {
  const [what, , changes] = attacks.find(([, , , reason]) => reason === node) ?? assert.fail();
  const { status } = await cluster.request({
    method: "PATCH",
    path: `${pathOf(forged("ReplicaSet", changes))}?dryRun=All&fieldManager=somebody&force=true`,
    contentType: "application/apply-patch+yaml",
    body: forged("ReplicaSet", changes),
  });
  assert.equal(status, 201, what);
});
