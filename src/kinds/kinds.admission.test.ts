// Tests which connections krane's policies admit, for pods that krane creates, with all their labels, and for pods that
// imitate them.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { PodTemplateSpec } from "kubernetes-types/core/v1.js";
import { admits, type Connection, type Endpoint } from "../../test/support/cilium-evaluator.ts";
import { deploymentSpec } from "../../test/support/deployment-messages.ts";
import { routeSpec } from "../../test/support/route-messages.ts";
import { sentinelSpec } from "../../test/support/sentinel-messages.ts";
import { ApplyRoute_Expose as Expose } from "../gen/ctrl/v1/route_pb.ts";
import type { KubeObject } from "../kube/types.ts";
import { desiredIngressPolicy } from "./deployment/ingress-policy.ts";
import { desiredPodTemplate } from "./deployment/pod-template.ts";
import { desiredPolicy } from "./route/desired.ts";
import { desiredGossipPolicy } from "./sentinel/desired.ts";
import { desiredSentinelTemplate } from "./sentinel/pod-template.ts";

interface Pod extends Endpoint {
  readonly name: string;
}

// Two environments of one workspace, and one of another workspace.
const acmeLive = { workspaceId: "ws_acme", environmentId: "env_live" };
const acmeTest = { workspaceId: "ws_acme", environmentId: "env_test" };
const otherLive = { workspaceId: "ws_other", environmentId: "env_other" };

const gate = sentinelSpec({ k8sName: "gate", sentinelId: "se_1", ...acmeLive });
const spare = sentinelSpec({ k8sName: "spare", sentinelId: "se_2", ...acmeLive });
const testGate = sentinelSpec({ k8sName: "test-gate", sentinelId: "se_3", ...acmeTest });
const otherGate = sentinelSpec({ k8sName: "other-gate", sentinelId: "se_4", ...otherLive });

const web = deploymentSpec({ k8sNamespace: "acme", deploymentId: "d_1", port: 8080, ...acmeLive });
const api = deploymentSpec({ k8sNamespace: "acme", deploymentId: "d_2", port: 3000, ...acmeLive });
const testWeb = deploymentSpec({ k8sNamespace: "acme", deploymentId: "d_3", port: 9000, ...acmeTest });
const otherWeb = deploymentSpec({ k8sNamespace: "other", deploymentId: "d_4", port: 8080, ...otherLive });

const sentinels = [gate, spare, testGate, otherGate].map((spec) =>
  podOf(spec.sentinelId, "sentinel", desiredSentinelTemplate(spec, { region: "local.dev" })),
);
const workloads = [web, api, testWeb, otherWeb].map((spec) =>
  podOf(spec.deploymentId, spec.namespace, desiredPodTemplate(spec, { secrets: { audience: "krane" } })),
);
const imitated = {
  "io.kubernetes.pod.namespace": "proxies",
  "kubernetes.io/metadata.name": "proxies",
  "gateway.networking.k8s.io/gateway-name": "public",
};
const others: readonly Pod[] = [
  { name: "a tenant's pod with a sentinel's labels", namespace: "acme", labels: sentinels[0]?.labels ?? {} },
  {
    name: "one that claims another namespace",
    namespace: "acme",
    labels: { ...sentinels[0]?.labels, "io.kubernetes.pod.namespace": "sentinel" },
  },
  { name: "a sentinel without labels", namespace: "sentinel", labels: {} },
  { name: "a pod of the system", namespace: "kube-system", labels: { "k8s-app": "kube-dns" } },
  { name: "a proxy", namespace: "proxies", labels: {} },
  { name: "a tenant's pod that looks like a proxy", namespace: "acme", labels: imitated },
];
const pods = [...sentinels, ...workloads, ...others];

const gossipPolicies = [gate, spare, testGate, otherGate].map(desiredGossipPolicy);
const ingressPolicies = [
  desiredIngressPolicy(web, [web.port, api.port]),
  desiredIngressPolicy(testWeb, [testWeb.port]),
  desiredIngressPolicy(otherWeb, [otherWeb.port]),
];

const ports = [53, 80, 3000, 7945, 7946, 7947, 8040, 8080, 9000];
const protocols = ["TCP", "UDP", "SCTP"] as const;

/** All connections to this pod that the policies admit, as readable lines. */
function admitted(policies: readonly KubeObject[], to: Pod | undefined): readonly string[] {
  assert.ok(to);
  const lines: string[] = [];
  for (const from of pods)
    for (const port of ports)
      for (const protocol of protocols) {
        const connection: Connection = { from, to, port, protocol };
        if (admits(policies, connection)) lines.push(`${from.name} ${port}/${protocol}`);
      }
  return lines;
}

function podOf(name: string, namespace: string, { metadata }: PodTemplateSpec): Pod {
  return { name, namespace, labels: metadata?.labels ?? {} };
}

function podNamed(name: string): Pod | undefined {
  return pods.find((pod) => pod.name === name);
}

const everything = pods.length * ports.length * protocols.length;

for (const [sentinel, peers] of [
  ["se_1", ["se_1", "se_2"]],
  ["se_2", ["se_1", "se_2"]],
  ["se_3", ["se_3"]],
  ["se_4", ["se_4"]],
] as const) {
  test(`gossip to ${sentinel} comes from the sentinels of its environment, on 7946 TCP and UDP, and from nobody else`, () => {
    assert.deepEqual(
      admitted(gossipPolicies, podNamed(sentinel)),
      peers.flatMap((peer) => [`${peer} 7946/TCP`, `${peer} 7946/UDP`]),
    );
  });
}

test("the gossip policy of one sentinel is enough for all of its environment, and says nothing of the others", () => {
  const [first] = gossipPolicies;
  assert.ok(first);
  assert.equal(admitted([first], podNamed("se_2")).length, 4);
  for (const name of ["se_3", "se_4", "d_1", "a tenant's pod with a sentinel's labels"])
    assert.equal(admitted([first], podNamed(name)).length, everything, name);
});

for (const [deployment, callers, open] of [
  ["d_1", ["se_1", "se_2"], [3000, 8080]],
  ["d_2", ["se_1", "se_2"], [3000, 8080]],
  ["d_3", ["se_3"], [9000]],
  ["d_4", ["se_4"], [8080]],
] as const) {
  test(`traffic to ${deployment} comes from the sentinels of its environment, on the environment's ports, and from nobody else`, () => {
    assert.deepEqual(
      admitted(ingressPolicies, podNamed(deployment)),
      callers.flatMap((caller) => open.map((port) => `${caller} ${port}/TCP`)),
    );
  });
}

test("the policy of one environment neither opens nor closes the other one of its workspace", () => {
  const [live, testing] = ingressPolicies;
  assert.ok(live && testing);
  assert.equal(admitted([live], podNamed("d_3")).length, everything);
  assert.deepEqual(admitted([testing], podNamed("d_3")), admitted([live, testing], podNamed("d_3")));
  assert.deepEqual(admitted([live], podNamed("d_1")), admitted([live, testing], podNamed("d_1")));
});

test("all policies together admit to each pod what its own admit", () => {
  const all = [...gossipPolicies, ...ingressPolicies];
  for (const { name } of sentinels)
    assert.deepEqual(admitted(all, podNamed(name)), admitted(gossipPolicies, podNamed(name)));
  for (const { name } of workloads)
    assert.deepEqual(admitted(all, podNamed(name)), admitted(ingressPolicies, podNamed(name)));
});

const routeTo = (expose: Expose, ...backends: readonly { deploymentId: string; port: number }[]) => {
  const owner = { k8sNamespace: "acme", ...acmeLive };
  const [first] = backends;
  return desiredPolicy(
    routeSpec({ ...owner, deploymentId: first?.deploymentId ?? "", backends: [...backends], expose }),
  );
};
const toWeb = { deploymentId: "d_1", port: 8080 };
const sentinelsOf = (open: readonly number[]) =>
  ["se_1", "se_2"].flatMap((caller) => open.map((port) => `${caller} ${port}/TCP`));
const withRoute = (policy: KubeObject) => [...gossipPolicies, ...ingressPolicies, policy];

test("a route for its environment admits the deployments of that, to its backend and on its port, and nobody else", () => {
  const policies = withRoute(routeTo(Expose.ENVIRONMENT, toWeb));
  assert.deepEqual(admitted(policies, podNamed("d_1")), [
    ...sentinelsOf([3000, 8080]),
    "d_1 8080/TCP",
    "d_2 8080/TCP",
  ]);
});

test("a route for the cluster admits every pod, to its backend and on its port", () => {
  const policies = withRoute(routeTo(Expose.CLUSTER, toWeb));
  const others = pods.filter(({ name }) => !["se_1", "se_2"].includes(name));
  const lines = admitted(policies, podNamed("d_1"));
  assert.deepEqual(
    new Set(lines),
    new Set([...sentinelsOf([3000, 8080]), ...others.map(({ name }) => `${name} 8080/TCP`)]),
  );
});

const gateway = { namespace: "gateway", name: "public", proxies: { namespace: "proxies" } };
const atGateway = () =>
  routeSpec({
    ...{ k8sNamespace: "acme", ...acmeLive, deploymentId: "d_1", backends: [toWeb] },
    ...{ expose: Expose.GATEWAY, hostnames: ["shop.example.com"] },
  });

test("a route for the Gateway admits its proxies, to its backend and on its port, and nobody who looks like them", () => {
  const policies = withRoute(desiredPolicy(atGateway(), gateway));
  assert.deepEqual(admitted(policies, podNamed("d_1")), [...sentinelsOf([3000, 8080]), "a proxy 8080/TCP"]);
});

test("a route for the Gateway admits nobody where none is configured", () => {
  const before = [...gossipPolicies, ...ingressPolicies];
  const policies = withRoute(desiredPolicy(atGateway()));
  for (const { name } of [...sentinels, ...workloads])
    assert.deepEqual(admitted(policies, podNamed(name)), admitted(before, podNamed(name)), name);
});

test("a route opens nothing that is not its backend, and one for nobody, without backends or to another environment nothing", () => {
  const before = [...gossipPolicies, ...ingressPolicies];
  for (const policy of [
    routeTo(Expose.CLUSTER, toWeb),
    routeTo(Expose.UNSPECIFIED, toWeb),
    routeTo(Expose.CLUSTER),
    routeTo(Expose.CLUSTER, { deploymentId: "d_3", port: 9000 }),
  ])
    for (const { name } of [...sentinels, ...workloads]) {
      if (name === "d_1") continue;
      assert.deepEqual(admitted([...before, policy], podNamed(name)), admitted(before, podNamed(name)), name);
    }
  for (const policy of [routeTo(Expose.UNSPECIFIED, toWeb), routeTo(Expose.CLUSTER)])
    assert.deepEqual(admitted([...before, policy], podNamed("d_1")), admitted(before, podNamed("d_1")));
});
