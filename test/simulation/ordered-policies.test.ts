// A policy that was ordered by a call lives beside those of the stream: through restarts, resyncs and
// replays, until the stream names it or somebody orders it away.
import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import type { Interceptor } from "@connectrpc/connect";
import { DeleteCiliumNetworkPolicySchema } from "../../src/gen/ctrl/v1/cilium_network_policy_pb.ts";
import { kinds } from "../../src/kinds/kinds.ts";
import { ciliumNetworkPolicies } from "../../src/kube/resources.ts";
import { annotationKeys } from "../../src/model/labels.ts";
import { applyPolicy, jsonBytes, policyDocument } from "../support/policy-messages.ts";
import { defaultOptions, region, SimulatedRegion } from "./simulated-region.ts";

const createPolicyController = await kinds.policy.loadController();

const never = new AbortController().signal;
const halfHourMs = 1_800_000;
const ref = { namespace: "acme", name: "to-web-1" };

function policy(index: number, selector: Record<string, unknown> = {}) {
  const spec = { ...policyDocument.spec, endpointSelector: selector };
  return applyPolicy({
    k8sName: `to-web-${index}`,
    ciliumNetworkPolicyId: `net_${index}`,
    policy: jsonBytes({ ...policyDocument, spec }),
  });
}

async function createWorld() {
  const asked = new Set<string>();
  const listen: Interceptor = (next) => (call) => {
    const { ciliumNetworkPolicyId } = call.message as { ciliumNetworkPolicyId?: string };
    if (/^GetDesired.*State$/.test(call.method.name)) asked.add(ciliumNetworkPolicyId ?? "");
    return next(call);
  };
  const world = await SimulatedRegion.create({ interceptors: [listen], hasDigests: false });
  const startAgent = async () => {
    const agent = world.createAgentOf("cilium", (deps) => createPolicyController(defaultOptions, deps));
    await world.resolved(agent.controller.start());
    return agent;
  };
  const live = () => world.api.get(ciliumNetworkPolicies, ref, {}, never);
  return { world, asked, startAgent, live };
}

test("it lives through a restart, resyncs and replays without one write, and is never asked for", async () => {
  const { world, asked, startAgent } = await createWorld();
  await world.plane.admin.setPolicy(region, policy(2));
  const agent = await startAgent();
  const { outcome } = await world.resolved(agent.controller.apply(policy(1), never));
  assert.equal(outcome, "applied");
  await world.clock.advance(halfHourMs);
  await agent.stop();
  const next = await startAgent();
  await world.clock.advance(halfHourMs);
  assert.deepEqual(next.writes, []);
  assert.equal((await world.policies()).length, 2);
  assert.deepEqual([...asked], ["net_2"]);
  assert.deepEqual(next.controller.blockedDeletions(), []);
  await world.stop();
});

test("it is kept as it was ordered after a restart, also where it was edited or deleted by hand", async () => {
  const { world, startAgent, live } = await createWorld();
  const agent = await startAgent();
  const selector = { matchLabels: { app: "web" } };
  await world.resolved(agent.controller.apply(policy(1, selector), never));
  await agent.stop();
  const before = await live();
  // While nobody looks, and while somebody does.
  const meddle = () =>
    world.api.apply(
      ciliumNetworkPolicies,
      { metadata: ref, spec: { endpointSelector: { matchLabels: { app: "other" } } } } as never,
      { fieldManager: "kubectl", force: true },
      never,
    );
  await meddle();
  await startAgent();
  const isRight = async () => {
    const spec = (await live())?.spec as { endpointSelector?: unknown } | undefined;
    return JSON.stringify(spec?.endpointSelector) === JSON.stringify(selector);
  };
  await world.until("it is put right", isRight);
  await meddle();
  await world.until("it is put right again", isRight);
  await world.api.delete(ciliumNetworkPolicies, ref, {}, never);
  await world.until("it is back", isRight);
  assert.deepEqual((await live())?.spec, before?.spec);
  await world.stop();
});

test("it yields to the stream once that names it, and holds against a replay of what it replaced", async () => {
  const { world, asked, startAgent, live } = await createWorld();
  await world.plane.admin.setPolicy(region, policy(1));
  const agent = await startAgent();
  await world.until("it is there", async () => (await live()) !== undefined);
  const selector = { matchLabels: { app: "ordered" } };
  await world.resolved(agent.controller.apply(policy(1, selector), never));
  asked.clear();
  await world.clock.advance(halfHourMs);
  await agent.stop();
  const next = await startAgent();
  await world.clock.advance(halfHourMs);
  assert.deepEqual(next.writes, []);
  assert.equal((await live())?.metadata?.annotations?.[annotationKeys.origin], "scheduler");
  await world.plane.admin.setPolicy(region, policy(1, { matchLabels: { app: "newer" } }));
  await world.until("the mark is gone", async () => {
    const annotations = (await live())?.metadata?.annotations ?? {};
    return !(annotationKeys.origin in annotations);
  });
  await world.clock.advance(120_000);
  assert.deepEqual([...asked], ["net_1"]);
  await world.stop();
});

test("it is gone at once when it is ordered away, and stays so", async () => {
  const { world, startAgent } = await createWorld();
  const agent = await startAgent();
  await world.resolved(agent.controller.apply(policy(1), never));
  await agent.stop();
  const next = await startAgent();
  const away = create(DeleteCiliumNetworkPolicySchema, { k8sNamespace: "acme", k8sName: "to-web-1" });
  assert.equal((await world.resolved(next.controller.delete(away, never))).outcome, "deleted");
  await next.stop();
  await startAgent();
  await world.clock.advance(120_000);
  assert.deepEqual(await world.policies(), []);
  await world.stop();
});

test("one that is too long to be kept is refused, and changes nothing", async () => {
  const { world, startAgent } = await createWorld();
  const agent = await startAgent();
  const values = Array.from({ length: 80_000 }, (_, index) => `team-${index}`);
  const selector = { matchExpressions: [{ key: "team", operator: "In", values }] };
  const refused = await world.resolved(agent.controller.apply(policy(1, selector), never));
  assert.deepEqual([refused.outcome, refused.fieldPath, refused.isInvalid], ["parked", "policy", true]);
  assert.deepEqual(await world.policies(), []);
  await world.stop();
});
