// The Cilium controller in a whole region: policies of the control plane in the cluster, and nothing else of it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createInProcessTransport } from "../../src/dev/in-process-transport.ts";
import { ObjectStatus_Outcome as Outcome } from "../../src/gen/krane/v1/agent_pb.ts";
import type { KindControllerOptions } from "../../src/kinds/kind.ts";
import { type ControllerOf, kinds } from "../../src/kinds/kinds.ts";
import { desiredPolicy } from "../../src/kinds/policy/desired.ts";
import { type CustomObject, ciliumNetworkPolicies, namespaces } from "../../src/kube/resources.ts";
import { handEdits, putObject, valueAt } from "../support/hand-edits.ts";
import { applyPolicy, jsonBytes, policyDocument, policySpec } from "../support/policy-messages.ts";
import { defaultOptions, region, type SimulatedAgent, SimulatedRegion } from "./simulated-region.ts";

const createPolicyController = await kinds.policy.loadController();

const never = new AbortController().signal;
const ref = { namespace: "acme", name: "to-web-1" };
type Agent = SimulatedAgent<ControllerOf<"policy">>;
type Overrides = Parameters<typeof applyPolicy>[0];

function policy(index: number, overrides: Overrides = {}) {
  return applyPolicy({
    k8sName: `to-web-${index}`,
    ciliumNetworkPolicyId: `net_${index}`,
    ...overrides,
  });
}

async function startCilium(
  world: SimulatedRegion,
  overrides: Partial<KindControllerOptions> = {},
): Promise<Agent> {
  const options = { ...defaultOptions, ...overrides };
  const agent = world.createAgentOf("cilium", (deps) => createPolicyController(options, deps));
  await world.resolved(agent.controller.start());
  return agent;
}

async function withOne(overrides: Partial<KindControllerOptions> = {}) {
  const world = await SimulatedRegion.create();
  await world.plane.admin.setPolicy(region, policy(1));
  const agent = await startCilium(world, overrides);
  await world.until("it is settled", () => agent.controller.status().stream?.cursor === 1n);
  return { world, agent };
}

const watchOnly = { resyncMs: 0, replayMs: 0 };

function live(world: SimulatedRegion): Promise<CustomObject | undefined> {
  return world.api.get(ciliumNetworkPolicies, ref, {}, never);
}

function meddle(world: SimulatedRegion, manifest: Omit<CustomObject, "metadata">, metadata = {}) {
  const object = { metadata: { ...ref, ...metadata }, ...manifest };
  return world.api.apply(ciliumNetworkPolicies, object, { fieldManager: "meddler", force: true }, never);
}

function statusOf(agent: Agent, key = "acme/to-web-1") {
  return agent.controller.objects().find((object) => object.key === key);
}

test("a policy comes, changes and goes as the control plane asks, in a namespace that is made for it", async () => {
  const { world, agent } = await withOne();
  assert.deepEqual((await live(world))?.spec, policyDocument.spec);
  assert.equal((await world.api.get(namespaces, { name: "acme" }, {}, never)) === undefined, false);
  const specs = [{ endpointSelector: {}, egressDeny: [{ toEntities: ["world"] }] }];
  const { spec: _, ...document } = policyDocument;
  await world.plane.admin.setPolicy(region, policy(1, { policy: jsonBytes({ ...document, specs }) }));
  await world.until("it is changed", async () => (await live(world))?.spec === undefined);
  assert.deepEqual(((await live(world)) as { specs?: unknown }).specs, specs);
  await world.plane.admin.deletePolicy(region, "net_1");
  await world.until("it is gone", async () => (await live(world)) === undefined);
  assert.equal(statusOf(agent)?.outcome, Outcome.DELETED);
  await world.stop();
});

test("an order is applied like a message of the stream, and returns its outcome", async () => {
  const { world, agent } = await withOne();
  const { controller } = agent;
  const applied = await world.resolved(controller.apply(policy(2), never));
  assert.equal(applied.outcome, "applied");
  const wrong = await world.resolved(controller.apply(policy(3, { policy: jsonBytes([]) }), never));
  assert.deepEqual([wrong.outcome, wrong.fieldPath], ["parked", "policy"]);
  const { k8sNamespace, k8sName } = policy(2);
  const order = { $typeName: "ctrl.v1.DeleteCiliumNetworkPolicy", k8sNamespace, k8sName } as const;
  assert.equal((await world.resolved(controller.delete(order, never))).outcome, "deleted");
  await world.stop();
});

test("without the kind it starts, everything waits with a reason, and goes on once the kind is there", async () => {
  const world = await SimulatedRegion.create({ withoutCilium: true });
  await world.plane.admin.setPolicy(region, policy(1));
  await world.plane.admin.setPolicy(region, policy(2));
  await world.plane.admin.deletePolicy(region, "net_2");
  const agent = await startCilium(world, watchOnly);
  await world.clock.advance(600_000);
  const status = agent.controller.status();
  assert.deepEqual([status.retrying, status.parked, status.caches[0]?.synced], [1, 0, false]);
  assert.match(status.caches[0]?.lastError ?? "", /404/);
  const waiting = statusOf(agent);
  assert.equal(waiting?.outcome, Outcome.RETRYING);
  assert.match(waiting?.reason ?? "", /the cluster has no CiliumNetworkPolicy/);
  // What the cluster cannot have is gone.
  assert.equal(statusOf(agent, "acme/to-web-2")?.outcome, Outcome.DELETED);
  assert.deepEqual(agent.writes, []);
  await world.installCilium();
  // No longer than it takes the watch to look again.
  await world.until("it is there", async () => (await live(world)) !== undefined, 30_000);
  assert.deepEqual(agent.controller.objects({ onlyTroubled: true }), []);
  await world.until(
    "the watch is well",
    () => agent.controller.status().caches[0]?.lastError === "",
    300_000,
  );
  await world.stop();
});

test("a kind whose first answer is still on its way is no trouble, and costs no more than that answer", async () => {
  const world = await SimulatedRegion.create();
  await world.plane.admin.setPolicy(region, policy(1));
  let isAnswering = false;
  world.server.faults.intercept(({ path }) =>
    path.endsWith("/ciliumnetworkpolicies") && !isAnswering ? "hang" : undefined,
  );
  const agent = await startCilium(world, watchOnly);
  await world.clock.advance(3_000);
  assert.deepEqual(agent.controller.objects({ onlyTroubled: true }), []);
  assert.equal(statusOf(agent)?.outcome, Outcome.PENDING);
  await agent.stop();
  isAnswering = true;
  await startCilium(world, watchOnly);
  await world.until("it is there", async () => (await live(world)) !== undefined, 2_000);
  await world.stop();
});

test("a policy that is gone by hand is back without a resync", async () => {
  const { world } = await withOne(watchOnly);
  const uid = (await live(world))?.metadata?.uid;
  await world.api.delete(ciliumNetworkPolicies, ref, {}, never);
  await world.until("it is back", async () => (await live(world)) !== undefined, 5_000);
  assert.notEqual((await live(world))?.metadata?.uid, uid);
  await world.stop();
});

test("every field that is edited by hand is put right without a resync", async () => {
  const { world } = await withOne(watchOnly);
  const transport = createInProcessTransport(world.server, { userAgent: "kubectl" });
  const path = `/apis/cilium.io/v2/namespaces/${ref.namespace}/ciliumnetworkpolicies/${ref.name}`;
  const manifest = desiredPolicy({ ...policySpec(), ...ref, policyId: "net_1" });
  const before = await live(world);
  assert.ok(before);
  let edits = 0;
  for (const { name, path: at } of handEdits(manifest, before)) {
    const now = await live(world);
    const edit = now && [...handEdits(manifest, now)].find((one) => one.name === name);
    assert.ok(edit, name);
    const written = await putObject(transport, path, edit.object, never);
    assert.notDeepEqual(valueAt(written, at), valueAt(before, at), name);
    edits += 1;
    const isRight = async () =>
      JSON.stringify(content(await live(world))) === JSON.stringify(content(before));
    // A policy that is edited this often is a contested one, and krane takes its time.
    await world.until(`${name} is put right`, isRight, 700_000);
    await world.clock.advance(900_000);
  }
  assert.ok(edits > 10, `${edits} edits`);
  await world.stop();
});

/** What a policy says, without the order of its members and what the server adds. */
function content(object: CustomObject | undefined): unknown {
  const { labels, annotations } = object?.metadata ?? {};
  return sorted({ labels, annotations, spec: object?.spec });
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(members.map(([name, member]) => [name, sorted(member)]));
}

test("what a message says about the object itself has no effect, or is refused with the field", async () => {
  const world = await SimulatedRegion.create();
  const metadata = {
    name: "another",
    namespace: "kube-system",
    labels: { "app.kubernetes.io/managed-by": "somebody", extra: "label" },
    annotations: { "example.com/x": "y" },
    finalizers: ["example.com/hold"],
    ownerReferences: [{ apiVersion: "v1", kind: "Namespace", name: "acme", uid: "uid-1" }],
  };
  const document = { ...policyDocument, metadata, status: { derivedFrom: "nothing" } };
  await world.plane.admin.setPolicy(region, policy(1, { policy: jsonBytes(document) }));
  const refused = new Map([
    [
      "policy.kind",
      policy(2, { policy: jsonBytes({ ...document, kind: "CiliumClusterwideNetworkPolicy" }) }),
    ],
    [
      "policy.spec.nodeSelector",
      policy(3, { policy: jsonBytes({ ...document, spec: { nodeSelector: {} } }) }),
    ],
    ["k8s_namespace", policy(4, { k8sNamespace: "kube-system" })],
    ["k8s_name", policy(5, { k8sName: "allow-sentinel-ingress-0123456789abcdef" })],
    ["policy", policy(6, { policy: new Uint8Array([0xff]) })],
  ]);
  for (const message of refused.values()) await world.plane.admin.setPolicy(region, message);
  const agent = await startCilium(world);
  await world.until("all are settled", () => agent.controller.status().stream?.cursor === 6n);
  const { metadata: made, spec } = (await live(world)) ?? {};
  assert.deepEqual(
    [made?.name, made?.namespace, made?.finalizers, made?.ownerReferences, spec],
    ["to-web-1", "acme", undefined, undefined, policyDocument.spec],
  );
  assert.deepEqual(Object.keys(made?.annotations ?? {}), [
    "krane.unkey.com/manifest-hash",
    "krane.unkey.com/seal",
  ]);
  assert.deepEqual(made?.labels, desiredPolicy({ ...policySpec(), policyId: "net_1" }).metadata.labels);
  assert.equal((await world.policies()).length, 1);
  const parked = agent.controller.objects().filter(({ outcome }) => outcome === Outcome.PARKED);
  assert.deepEqual(parked.map(({ fieldPath }) => fieldPath).sort(), [...refused.keys()].sort());
  await world.stop();
});

test("the policies of deployments and sentinels are never touched, not even on a mistaken order", async () => {
  const world = await SimulatedRegion.create();
  await world.setDeployment(1);
  await world.startAgent();
  await world.until("the ingress policy is there", async () => (await world.policies()).length === 1);
  await world.api.create(namespaces, { metadata: { name: "sentinel" } }, {}, never);
  const labels = {
    "app.kubernetes.io/managed-by": "krane",
    "app.kubernetes.io/component": "gossip-lan",
    "unkey.com/sentinel.id": "se_1",
  };
  const gossip = { namespace: "sentinel", name: "gw-gossip" };
  await world.api.apply(
    ciliumNetworkPolicies,
    { metadata: { ...gossip, labels }, spec: { endpointSelector: {} } },
    { fieldManager: "krane", force: false },
    never,
  );
  const before = await world.policies();
  const agent = await startCilium(world);
  for (const { metadata } of before) {
    const { namespace: k8sNamespace = "", name: k8sName = "" } = metadata ?? {};
    const order = { $typeName: "ctrl.v1.DeleteCiliumNetworkPolicy", k8sNamespace, k8sName } as const;
    await world.resolved(agent.controller.delete(order, never));
    await world.resolved(agent.controller.apply(policy(9, { k8sNamespace, k8sName }), never));
  }
  await world.clock.advance(900_000);
  assert.deepEqual(await world.policies(), before);
  assert.deepEqual(
    agent.writes.filter(({ kind }) => kind === "CiliumNetworkPolicy"),
    [],
  );
  await world.stop();
});

test("a policy of somebody else under the name is a conflict, shown and not touched", async () => {
  const world = await SimulatedRegion.create();
  await world.api.create(namespaces, { metadata: { name: "acme" } }, {}, never);
  await meddle(world, { spec: { endpointSelector: {} } });
  const before = await live(world);
  await world.plane.admin.setPolicy(region, policy(1));
  const agent = await startCilium(world);
  await world.until("the conflict is seen", () => statusOf(agent)?.outcome === Outcome.CONFLICT);
  await world.plane.admin.deletePolicy(region, "net_1");
  await world.clock.advance(900_000);
  assert.deepEqual(await live(world), before);
  await world.stop();
});

test("a name that is given to another id is a conflict, and free when the first one is deleted", async () => {
  const { world, agent } = await withOne();
  const before = await live(world);
  world.plane.faults.restoreFromEmpty(region);
  await world.plane.admin.setPolicy(region, policy(1, { ciliumNetworkPolicyId: "net_other" }));
  await world.until("it is seen", () => statusOf(agent)?.outcome === Outcome.CONFLICT, 660_000);
  assert.deepEqual(await live(world), before);
  await world.api.delete(ciliumNetworkPolicies, ref, {}, never);
  const id = async () => (await live(world))?.metadata?.labels?.["unkey.com/networkpolicy.id"];
  await world.until("the name is used for the other", async () => (await id()) === "net_other");
  await world.stop();
});

test("a control plane that lost its memory leads to no delete, and a person can release one", async () => {
  const { world, agent } = await withOne();
  await world.clock.advance(301_000);
  world.plane.faults.restoreFromEmpty(region);
  await world.clock.advance(3_600_000);
  assert.notEqual(await live(world), undefined);
  assert.deepEqual(
    agent.controller.blockedDeletions().map(({ controller, key, id }) => [controller, key, id]),
    [["cilium", "acme/to-web-1", "net_1"]],
  );
  assert.equal(agent.controller.releaseDeletion("acme/to-web-1"), true);
  await world.until("it is gone", async () => (await live(world)) === undefined);
  await world.stop();
});

test("at rest, on a replay and after a restart nothing is written", async () => {
  const { world, agent } = await withOne();
  await world.clock.advance(2_000);
  const before = agent.writes.length;
  await world.clock.advance(1_800_000);
  assert.equal(agent.writes.length, before);
  await agent.stop();
  const second = await startCilium(world);
  await world.clock.advance(1_800_000);
  assert.deepEqual(second.writes, []);
  assert.equal(second.controller.status().stream?.cursor, 1n);
  await world.stop();
});

test("a policy as an older agent left it is taken over in place", async () => {
  const world = await SimulatedRegion.create();
  await world.api.create(namespaces, { metadata: { name: "acme" } }, {}, never);
  const { annotations: _, ...metadata } = desiredPolicy({
    ...policySpec(),
    ...ref,
    policyId: "net_1",
  }).metadata;
  const { object } = await world.api.apply(
    ciliumNetworkPolicies,
    { metadata, spec: { endpointSelector: {}, ingress: [{}] } },
    { fieldManager: "krane", force: false },
    never,
  );
  await world.plane.admin.setPolicy(region, policy(1));
  const agent = await startCilium(world);
  await world.until("it is settled", () => agent.controller.status().stream?.cursor === 1n);
  const taken = await live(world);
  assert.equal(taken?.metadata?.uid, object.metadata?.uid);
  assert.deepEqual(taken?.spec, policyDocument.spec);
  await world.stop();
});
