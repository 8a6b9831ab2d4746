// Who reaches whom with the policies of deploy/manifests beside those that krane makes, judged by Cilium's own rules.
import assert from "node:assert/strict";
import { test } from "node:test";
import { desiredIngressPolicy } from "../../src/kinds/deployment/ingress-policy.ts";
import { sentinelPort } from "../../src/kinds/sentinel/identity.ts";
import type { KubeObject } from "../../src/kube/types.ts";
import { sentinelNamespace } from "../../src/model/labels.ts";
import { admits, type Endpoint } from "../support/cilium-evaluator.ts";
import { manifestsOf } from "../support/deployed-rights.ts";

const tenant = { "unkey.com/workspace.id": "ws_1", "unkey.com/environment.id": "env_1" };
const environment = { namespace: "acme", workspaceId: "ws_1", environmentId: "env_1" };
const installed = manifestsOf("cilium.yaml");
const policies: readonly KubeObject[] = [...installed, desiredIngressPolicy(environment, [8080])];

function managed(namespace: string, component: string): Endpoint {
  const own = { "app.kubernetes.io/managed-by": "krane", "app.kubernetes.io/component": component };
  return { namespace, labels: { ...own, ...tenant } };
}

function release(component: string): Endpoint {
  const labels = { "app.kubernetes.io/name": "krane", "app.kubernetes.io/instance": "krane" };
  return { namespace: "krane", labels: { ...labels, "app.kubernetes.io/component": component } };
}

const pod = managed("acme", "deployment");
const otherPod = managed("other", "deployment");
const sentinel = managed(sentinelNamespace, "sentinel");
const agent = release("agent");
const server = release("server");
const vault = release("vault");
const dns: Endpoint = { namespace: "kube-system", labels: { "k8s-app": "kube-dns" } };
const prometheus: Endpoint = { namespace: "monitoring", labels: { app: "prometheus" } };
const stranger: Endpoint = { namespace: "default", labels: {} };
/** Somebody who calls himself the agent, in a namespace that is not krane's. */
const impostor: Endpoint = { ...agent, namespace: "default" };

const names = new Map<Endpoint, string>([
  [pod, "a pod"],
  [otherPod, "a pod of somebody else"],
  [sentinel, "its sentinel"],
  [agent, "the agent"],
  [server, "the server"],
  [vault, "the vault"],
  [dns, "DNS"],
  [prometheus, "Prometheus"],
  [stranger, "a stranger"],
  [impostor, "an impostor"],
]);

const table: readonly (readonly [Endpoint, Endpoint, number, "TCP" | "UDP", boolean])[] = [
  [pod, dns, 53, "UDP", true],
  [pod, dns, 53, "TCP", true],
  [pod, dns, 9153, "TCP", false],
  [pod, agent, 8070, "TCP", true],
  [pod, agent, 9090, "TCP", false],
  [pod, server, 7091, "TCP", false],
  [pod, vault, 8060, "TCP", false],
  [pod, otherPod, 8080, "TCP", false],
  [pod, sentinel, sentinelPort, "TCP", false],
  [pod, stranger, 443, "TCP", false],
  [sentinel, pod, 8080, "TCP", true],
  [sentinel, pod, 22, "TCP", false],
  [stranger, pod, 8080, "TCP", false],
  // No policy of an environment is there for it, so nobody gets in.
  [sentinel, otherPod, 8080, "TCP", false],
  [stranger, sentinel, sentinelPort, "TCP", false],
  // A standby forwards calls to the leader.
  [agent, agent, 8070, "TCP", true],
  [impostor, agent, 8070, "TCP", false],
  [agent, server, 7091, "TCP", true],
  [agent, vault, 8060, "TCP", true],
  [impostor, server, 7091, "TCP", false],
  [impostor, vault, 8060, "TCP", false],
  [stranger, agent, 8070, "TCP", false],
  [server, vault, 8060, "TCP", false],
  [prometheus, agent, 9090, "TCP", true],
  [prometheus, server, 9090, "TCP", true],
  [prometheus, vault, 9090, "TCP", true],
  [prometheus, vault, 8060, "TCP", false],
];

for (const [from, to, port, protocol, expected] of table) {
  const verb = expected ? "reaches" : "does not reach";
  test(`${names.get(from)} ${verb} ${names.get(to)} on ${port}/${protocol}`, () => {
    assert.equal(admits(policies, { from, to, port, protocol }), expected);
  });
}

test("the Kubernetes API and the credentials of a node are denied to pods, whatever else allows them", () => {
  const workloads = installed.find(({ metadata }) => metadata?.name === "krane-workloads");
  const { egressDeny } = (workloads as KubeObject & { readonly spec: { readonly egressDeny: unknown } }).spec;
  assert.deepEqual(egressDeny, [{ toEntities: ["kube-apiserver"] }, { toCIDR: ["169.254.169.254/32"] }]);
});
