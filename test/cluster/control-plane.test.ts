// The ground that the other cluster tests stand on: this really is Kubernetes,
// and it treats krane's kind of objects as a production cluster would.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { loadKubernetesVersion } from "../../tools/kube-recipe.ts";
import { countAuditedCalls } from "../support/audit-log.ts";
import type { ApiAnswer } from "../support/cluster/api-request.ts";
import { zones } from "../support/cluster/manifests.ts";
import { clusterUnderTest } from "../support/cluster-under-test.ts";
import { eventually } from "../support/eventually.ts";

const cluster = clusterUnderTest();
const applyType = "application/apply-patch+yaml";

interface PodList {
  readonly items: readonly {
    readonly spec: { readonly nodeName?: string; readonly runtimeClassName?: string };
    readonly status: {
      readonly podIP?: string;
      readonly conditions?: readonly { readonly type: string; readonly status: string }[];
    };
  }[];
}

interface NodeList {
  readonly items: readonly {
    readonly metadata: { readonly name: string; readonly labels: Readonly<Record<string, string>> };
  }[];
}

function replicaSet(namespace: string, name: string): unknown {
  const labels = { "unkey.com/deployment.id": name };
  return {
    apiVersion: "apps/v1",
    kind: "ReplicaSet",
    metadata: { name, namespace, labels },
    spec: {
      replicas: 3,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: {
          runtimeClassName: "gvisor",
          tolerations: [
            { key: "karpenter.sh/nodepool", operator: "Equal", value: "untrusted", effect: "NoSchedule" },
          ],
          topologySpreadConstraints: [
            {
              maxSkew: 1,
              topologyKey: "topology.kubernetes.io/zone",
              whenUnsatisfiable: "ScheduleAnyway",
              labelSelector: { matchLabels: labels },
            },
          ],
          containers: [{ name: "app", image: "registry.example/app:1" }],
        },
      },
    },
  };
}

function untrustedPod(name: string): unknown {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name },
    spec: {
      tolerations: [{ key: "karpenter.sh/nodepool", operator: "Exists" }],
      containers: [{ name: "app", image: "registry.example/app:1" }],
    },
  };
}

function networkPolicy(namespace: string, spec: unknown): unknown {
  return {
    apiVersion: "cilium.io/v2",
    kind: "CiliumNetworkPolicy",
    metadata: { name: "policy", namespace },
    spec,
  };
}

function apply(path: string, body: unknown): Promise<ApiAnswer> {
  return cluster.request({
    method: "PATCH",
    path: `${path}?fieldManager=krane&fieldValidation=Strict`,
    contentType: applyType,
    body,
  });
}

test("a ReplicaSet of 3 applied server-side becomes 3 Ready pods in three zones", async (t) => {
  const namespace = await cluster.freshNamespace(t);
  const path = `/apis/apps/v1/namespaces/${namespace}/replicasets/web`;
  const applied = await apply(path, replicaSet(namespace, "web"));
  assert.equal(applied.status, 201, JSON.stringify(applied.body));

  const pods = await eventually("3 pods are Ready", async () => {
    const answer = await cluster.request({ path: `/api/v1/namespaces/${namespace}/pods` });
    const { items } = answer.body as PodList;
    const ready = items.filter((pod) =>
      pod.status.conditions?.some(({ type, status }) => type === "Ready" && status === "True"),
    );
    assert.equal(ready.length, 3);
    return ready;
  });

  const nodes = (await cluster.request({ path: "/api/v1/nodes" })).body as NodeList;
  const zoneOf = new Map(
    nodes.items.map(({ metadata }) => [metadata.name, metadata.labels["topology.kubernetes.io/zone"]]),
  );
  const used = pods.map((pod) => zoneOf.get(pod.spec.nodeName ?? ""));
  assert.deepEqual(used.sort(), [...zones]);
  assert.ok(pods.every((pod) => pod.spec.nodeName?.startsWith("untrusted-")));
  assert.ok(pods.every((pod) => pod.spec.runtimeClassName === "gvisor"));
  assert.equal(new Set(pods.map((pod) => pod.status.podIP)).size, 3, "each pod has an address of its own");
});

test("a pod that tolerates no taint is not scheduled", async (t) => {
  const namespace = await cluster.freshNamespace(t);
  const created = await cluster.request({
    method: "POST",
    path: `/api/v1/namespaces/${namespace}/pods`,
    body: {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "stray" },
      spec: { containers: [{ name: "app", image: "registry.example/app:1" }] },
    },
  });
  assert.equal(created.status, 201, JSON.stringify(created.body));
  const pod = await eventually("the scheduler has refused the pod", async () => {
    const { items } = (await cluster.request({ path: `/api/v1/namespaces/${namespace}/pods` }))
      .body as PodList;
    const scheduled = items[0]?.status.conditions?.find(({ type }) => type === "PodScheduled");
    assert.equal(scheduled?.status, "False");
    return items[0];
  });
  assert.equal(pod?.spec.nodeName, undefined);
});

test("the CiliumNetworkPolicy definition takes a policy and refuses a broken one", async (t) => {
  const namespace = await cluster.freshNamespace(t);
  const path = `/apis/cilium.io/v2/namespaces/${namespace}/ciliumnetworkpolicies/policy`;
  const ingress = [
    {
      fromEndpoints: [{ matchLabels: { "app.kubernetes.io/component": "sentinel" } }],
      toPorts: [{ ports: [{ port: "8080", protocol: "TCP" }] }],
    },
  ];
  const good = networkPolicy(namespace, { endpointSelector: { matchLabels: { app: "web" } }, ingress });
  const accepted = await apply(path, good);
  assert.equal(accepted.status, 201, JSON.stringify(accepted.body));

  const bad = networkPolicy(namespace, {
    endpointSelector: { matchLabels: { app: "web" } },
    ingress: [{ toPorts: [{ ports: [{ port: "8080", protocol: "SMOKE" }] }] }],
  });
  const refused = await apply(path, bad);
  assert.equal(refused.status, 422, JSON.stringify(refused.body));
});

test("the agent's user may do nothing until a role is bound to it", async (t) => {
  const namespace = await cluster.freshNamespace(t);
  const list = { path: `/apis/apps/v1/namespaces/${namespace}/replicasets`, token: cluster.agentToken };
  assert.equal((await cluster.request(list)).status, 403);

  await cluster.grantToAgent(t, [{ apiGroups: ["apps"], resources: ["replicasets"], verbs: ["list"] }]);
  await eventually("the role has reached the authorizer", async () => {
    assert.equal((await cluster.request(list)).status, 200);
  });
  const pods = { path: `/api/v1/namespaces/${namespace}/pods`, token: cluster.agentToken };
  assert.equal((await cluster.request(pods)).status, 403, "the role covers ReplicaSets only");
});

test("the audit log has every call with its user, verb and answer", async (t) => {
  const namespace = await cluster.freshNamespace(t);
  const path = `/api/v1/namespaces/${namespace}/configmaps`;
  for (let call = 0; call < 3; call += 1) {
    await cluster.request({ path, token: cluster.agentToken });
  }
  await cluster.request({ path });
  const count = (user: string, statusCode: number) =>
    countAuditedCalls(
      cluster.auditLogPath,
      (call) =>
        call.user === user &&
        call.verb === "list" &&
        call.resource === "configmaps" &&
        call.namespace === namespace &&
        call.statusCode === statusCode,
    );
  await eventually("all four calls are in the log", async () => {
    assert.equal(await count(cluster.agentUser, 403), 3);
    assert.equal(await count("admin", 200), 1);
  });
});

test("the server and kubectl say the version that they were built from", async () => {
  const server = (await cluster.request({ path: "/version" })).body as { readonly gitVersion: string };
  const client = JSON.parse(await cluster.kubectl(["version", "--client", "--output=json"])) as {
    readonly clientVersion: { readonly gitVersion: string };
  };
  assert.match(server.gitVersion, /^v1\.\d+\.\d+$/);
  assert.equal(client.clientVersion.gitVersion, server.gitVersion);
  if (process.env["KUBEBUILDER_ASSETS"] === undefined) {
    const toolsDir = fileURLToPath(new URL("../../tools", import.meta.url));
    assert.equal(server.gitVersion, await loadKubernetesVersion(toolsDir));
  }
});

test("a pod keeps the failure that a test writes into its status", async (t) => {
  const namespace = await cluster.freshNamespace(t);
  const pods = `/api/v1/namespaces/${namespace}/pods`;
  const create = async (name: string) => {
    await cluster.request({ method: "POST", path: pods, body: untrustedPod(name) });
    await eventually(`${name} runs`, async () => assert.equal(await phase(name), "Running"));
  };
  const phase = async (name: string) =>
    ((await cluster.request({ path: `${pods}/${name}` })).body as { status: { phase: string } }).status.phase;
  await create("failing");
  const patched = await cluster.request({
    method: "PATCH",
    path: `${pods}/failing/status`,
    contentType: "application/strategic-merge-patch+json",
    body: {
      status: {
        phase: "Pending",
        containerStatuses: [
          {
            name: "app",
            ready: false,
            started: false,
            state: { running: null, waiting: { reason: "ImagePullBackOff" } },
          },
        ],
      },
    },
  });
  assert.equal(patched.status, 200, JSON.stringify(patched.body));
  // Whoever plays the kubelet sees the patch before it sees the second pod.
  await create("healthy");
  assert.equal(await phase("failing"), "Pending");
});

test("an emptied cluster has no namespaces of tests and nothing that krane manages", async (t) => {
  const namespace = await cluster.freshNamespace(t);
  const labels = { "app.kubernetes.io/managed-by": "krane" };
  await apply(`/apis/apps/v1/namespaces/${namespace}/replicasets/web`, replicaSet(namespace, "web"));
  await apply("/api/v1/namespaces/default/secrets/pull", {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: "pull", namespace: "default", labels },
  });
  await cluster.empty();
  const names = await cluster.kubectl(["get", "namespaces", "--output=name"]);
  assert.deepEqual(names.trim().split("\n").sort(), [
    "namespace/default",
    "namespace/kube-node-lease",
    "namespace/kube-public",
    "namespace/kube-system",
  ]);
  assert.equal((await cluster.request({ path: "/api/v1/namespaces/default/secrets/pull" })).status, 404);
  assert.deepEqual(((await cluster.request({ path: "/api/v1/pods" })).body as PodList).items, []);
});
