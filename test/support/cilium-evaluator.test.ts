import assert from "node:assert/strict";
import { test } from "node:test";
import { admits, type Connection, type Endpoint } from "./cilium-evaluator.ts";

const web: Endpoint = { namespace: "acme", labels: { app: "web" } };
const front: Endpoint = { namespace: "acme", labels: { app: "front", tier: "1" } };
const stranger: Endpoint = { namespace: "other", labels: { app: "front" } };
const call = (from: Endpoint, to = web, port = 80, protocol: Connection["protocol"] = "TCP") => ({
  from,
  to,
  port,
  protocol,
});

function policy(spec: object, namespace = "acme") {
  return { metadata: { namespace }, spec: { endpointSelector: { matchLabels: { app: "web" } }, ...spec } };
}

const fromFront = { fromEndpoints: [{ matchLabels: { app: "front" } }] };
const tcp80 = { toPorts: [{ ports: [{ port: "80", protocol: "TCP" }] }] };

const table: readonly (readonly [string, object, Connection, boolean])[] = [
  ["a pod that is not selected is open", { ingress: [fromFront] }, call(stranger, front), true],
  ["a named peer is let in", { ingress: [fromFront] }, call(front), true],
  ["a peer of the same labels elsewhere is not", { ingress: [fromFront] }, call(stranger), false],
  ["an empty rule lets nobody in", { ingress: [{}] }, call(front), false],
  ["an empty list of rules closes nothing", { ingress: [] }, call(stranger), true],
  [
    "an empty list of peers lets nobody in",
    { ingress: [{ fromEndpoints: [], ...tcp80 }] },
    call(front),
    false,
  ],
  ["the empty selector means the own namespace", { ingress: [{ fromEndpoints: [{}] }] }, call(front), true],
  ["and no other", { ingress: [{ fromEndpoints: [{}] }] }, call(stranger), false],
  ["ports alone let everybody in", { ingress: [tcp80] }, call(stranger), true],
  ["on that port", { ingress: [tcp80] }, call(stranger, web, 81), false],
  ["and that protocol", { ingress: [tcp80] }, call(stranger, web, 80, "UDP"), false],
  ["a port without a protocol is every one", ports({ port: "80" }), call(front, web, 80, "SCTP"), true],
  ["ANY is every one", ports({ port: "80", protocol: "ANY" }), call(front, web, 80, "UDP"), true],
  ["a range has its end", ports({ port: "80", endPort: 90 }), call(front, web, 90), true],
  ["and nothing after it", ports({ port: "80", endPort: 90 }), call(front, web, 91), false],
  ["a list without ports is every port", { ingress: [{ toPorts: [{ ports: [] }] }] }, call(front), true],
  [
    "a selector with a namespace looks there",
    { ingress: [{ fromEndpoints: [{ matchLabels: { "k8s:io.kubernetes.pod.namespace": "other" } }] }] },
    call(stranger),
    true,
  ],
  ["expressions: In", expression("In", ["front"]), call(front), true],
  ["expressions: NotIn", expression("NotIn", ["front"]), call(front), false],
  ["expressions: Exists", expression("Exists"), call(front), true],
  ["expressions: DoesNotExist", expression("DoesNotExist"), call(front), false],
  ["a denial wins", { ingress: [fromFront], ingressDeny: [fromFront] }, call(front), false],
  ["ingress says nothing of egress", { ingress: [fromFront] }, call(web, stranger), true],
  ["egress is judged at the other end", { egress: [{}] }, call(web, stranger), false],
  ["an entity that pods are part of", { ingress: [{ fromEntities: ["cluster"] }] }, call(stranger), true],
  ["one that no pod is", { ingress: [{ fromEntities: ["host", "world"] }] }, call(front), false],
  ["a network is no pod", { ingress: [{ fromCIDR: ["0.0.0.0/0"] }] }, call(front), false],
  ["also with a port", { egress: [{ toCIDRSet: [{ cidr: "::/0" }], ...tcp80 }] }, call(web, front), false],
  [
    "egress to a named peer",
    { egress: [{ toEndpoints: [{ matchLabels: { app: "front" } }] }] },
    call(web, front),
    true,
  ],
];

function ports(port: object): object {
  return { ingress: [{ toPorts: [{ ports: [port] }] }] };
}

function expression(operator: string, values?: readonly string[]): object {
  return { ingress: [{ fromEndpoints: [{ matchExpressions: [{ key: "app", operator, values }] }] }] };
}

for (const [what, spec, connection, expected] of table) {
  test(what, () => {
    assert.equal(admits([policy(spec)], connection), expected);
  });
}

test("policies add up", () => {
  const other = { ingress: [{ fromEndpoints: [{ matchLabels: { tier: "2" } }] }] };
  assert.equal(admits([policy(other)], call(front)), false);
  assert.equal(admits([policy(other), policy({ ingress: [fromFront] })], call(front)), true);
});

test("a policy selects in its own namespace only, whatever it says", () => {
  const endpointSelector = { matchLabels: { "io.kubernetes.pod.namespace": "acme" } };
  assert.equal(admits([policy({ endpointSelector, ingress: [{}] }, "other")], call(front)), true);
});

test("a clusterwide policy selects everywhere, and its peers are everywhere", () => {
  const clusterwide = (spec: object) => ({
    kind: "CiliumClusterwideNetworkPolicy",
    spec: { endpointSelector: { matchLabels: { app: "web" } }, ...spec },
  });
  const elsewhere = { namespace: "third", labels: { app: "web" } };
  assert.equal(admits([clusterwide({ ingress: [{}] })], call(front, elsewhere)), false);
  assert.equal(admits([clusterwide({ ingress: [fromFront] })], call(stranger, elsewhere)), true);
  const nowhere: object = { spec: { endpointSelector: {} } };
  assert.throws(() => admits([nowhere], call(front)));
});

for (const spec of [
  { ingress: [{ fromEntities: ["unmanaged"] }] },
  { egress: [{ toFQDNs: [{ matchName: "example.com" }] }], endpointSelector: {} },
  { ingress: [{ toPorts: [{ ports: [{ port: "80" }], rules: { http: [] } }] }] },
  { ingress: [{ toPorts: [{ ports: [{ port: "http" }] }] }] },
  { enableDefaultDeny: { ingress: false }, ingress: [fromFront] },
]) {
  test(`what it does not know it does not judge: ${JSON.stringify(spec)}`, () => {
    assert.throws(() => admits([policy(spec)], call(front)));
  });
}
