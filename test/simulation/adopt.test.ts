// Adopting objects of another krane: after a lost key, a renamed region or a restore into another cluster. Nothing is
// deleted, everything is told, and what a person allows becomes this krane's with its pods (K4, K11).
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Secret } from "../../src/config/secret.ts";
import type { RunningController } from "../../src/engine/running-controller.ts";
import type { Stranger } from "../../src/gen/krane/v1/agent_pb.ts";
import type { KindControllerOptions } from "../../src/kinds/kind.ts";
import { kinds } from "../../src/kinds/kinds.ts";
import {
  appsDeployments,
  ciliumNetworkPolicies,
  events,
  namespaces,
  podDisruptionBudgets,
  pods,
  replicaSets,
  secrets,
  services,
} from "../../src/kube/resources.ts";
import type { KubeObject, ResourceKind } from "../../src/kube/types.ts";
import { annotationKeys } from "../../src/model/labels.ts";
import type { Seal } from "../../src/model/seal.ts";
import { applyPolicy } from "../support/policy-messages.ts";
import { createTestSeal, otherSealKey, testSeal } from "../support/test-seal.ts";
import { setSentinel } from "./sentinel-agents.ts";
import { defaultOptions, region, SimulatedRegion } from "./simulated-region.ts";

const create = {
  deployments: await kinds.deployment.loadController(),
  sentinels: await kinds.sentinel.loadController(),
  cilium: await kinds.policy.loadController(),
};
const never = new AbortController().signal;
const anHourMs = 3_600_000;
const written = [
  replicaSets,
  appsDeployments,
  services,
  podDisruptionBudgets,
  ciliumNetworkPolicies,
  secrets,
] as const;

async function startAgent(
  world: SimulatedRegion,
  { seal = testSeal, name = "deployments", ...overrides }: AgentChoice = {},
) {
  const options = { ...defaultOptions, ...overrides };
  const agent = world.createAgentOf<RunningController>(name, (deps) =>
    create[name](options, { ...deps, seal }),
  );
  await world.resolved(agent.controller.start());
  return agent;
}

interface AgentChoice extends Partial<KindControllerOptions> {
  readonly seal?: Seal;
  readonly name?: keyof typeof create;
}

/** A world whose objects another krane made, and left. */
async function worldOf(other: AgentChoice, want: (world: SimulatedRegion) => Promise<unknown>) {
  const world = await SimulatedRegion.create({ withPods: true });
  await want(world);
  const agent = await startAgent(world, other);
  await world.clock.advance(60_000);
  assert.deepEqual(agent.controller.objects({ onlyTroubled: true }), []);
  await agent.stop();
  return world;
}

const threeDeployments = async (world: SimulatedRegion) => {
  for (const index of [1, 2, 3]) await world.setDeployment(index);
};

async function liveObjects(world: SimulatedRegion): Promise<{ kind: ResourceKind; object: KubeObject }[]> {
  const lists = written.map(async (kind: ResourceKind) =>
    (await world.list(kind))
      .filter(({ metadata }) => metadata?.annotations?.[annotationKeys.seal] !== undefined)
      .map((object) => ({ kind, object })),
  );
  return (await Promise.all(lists)).flat();
}

/** Everything but the seal and the status. A new annotation is a new generation of an apps/v1 Deployment. */
async function contents(world: SimulatedRegion): Promise<readonly unknown[]> {
  return (await liveObjects(world)).map(({ object }) => {
    const {
      managedFields: _,
      resourceVersion: __,
      generation,
      annotations,
      ...metadata
    } = object.metadata ?? {};
    const { [annotationKeys.seal]: ___, ...others } = annotations ?? {};
    const { status: ____, ...content } = object as KubeObject & { status?: unknown };
    return { ...content, metadata: { ...metadata, annotations: others } };
  });
}

async function uidsOf(world: SimulatedRegion, kind: ResourceKind): Promise<readonly (string | undefined)[]> {
  return (await world.list(kind)).map(({ metadata }) => metadata?.uid).sort();
}

/** Adopted with the seal of the krane under test, for its own uid. */
async function areAdopted(world: SimulatedRegion): Promise<boolean> {
  const live = await liveObjects(world);
  return live.every(({ kind, object }) => {
    const reading = testSeal.read(kind, object.metadata);
    return reading.kind === "valid" && reading.isCurrent && reading.isAdopted;
  });
}

const isEvent = ({ kind }: { readonly kind: string }) => kind === "Event";
const isOther = (write: { readonly kind: string }) => !isEvent(write) && write.kind !== "Namespace";

/** Adopts everything, and checks that it is done with one write each. */
async function adoptAll(world: SimulatedRegion, agent: Awaited<ReturnType<typeof startAgent>>) {
  const before = await contents(world);
  const podUids = await uidsOf(world, pods);
  const strangers = agent.controller.seals.strangers();
  assert.equal(strangers.length, before.length, "all are listed");
  assert.ok(strangers.every(({ adoptable, obstacle }) => adoptable && obstacle === ""));
  const outcomes = agent.controller.seals.adopt(strangers);
  assert.ok(outcomes.every(({ kind }) => kind === "allowed"));
  assert.ok(agent.controller.seals.adopt(strangers).every(({ kind }) => kind === "pending"));
  await world.until("all are adopted", () => areAdopted(world));
  await world.clock.advance(60_000);
  const writes = agent.writes.filter(isOther).length;
  assert.equal(writes, strangers.length, "one write each");
  assert.deepEqual(agent.controller.seals.strangers(), []);
  assert.deepEqual(agent.controller.objects({ onlyTroubled: true }), []);
  assert.deepEqual(await contents(world), before, "nothing but the seal was changed");
  const told = (await world.list(events)).filter(({ reason }) => reason === "Adopted");
  assert.equal(told.length, strangers.length);
  const all = agent.writes.length;
  await world.clock.advance(anHourMs);
  assert.equal(agent.writes.length, all, "nothing is written after that");
  assert.deepEqual(await uidsOf(world, pods), podUids, "the pods stayed");
}

const lostKey = createTestSeal({ keys: [otherSealKey] });

describe("objects of another krane that desired state names", () => {
  for (const [what, seal, reason] of [
    ["after a lost key", lostKey, `it is sealed with the unknown key "${otherSealKey.id}"`],
    ["after a renamed region", createTestSeal({ region: "old.dev" }), 'it belongs to the region "old.dev"'],
  ] as const)
    test(`${what} are kept, told and adopted`, async () => {
      const world = await worldOf({ seal }, threeDeployments);
      const uids = await uidsOf(world, replicaSets);
      const agent = await startAgent(world);
      await world.clock.advance(anHourMs);
      assert.deepEqual(agent.writes.filter(isOther), []);
      assert.deepEqual(await uidsOf(world, replicaSets), uids);
      const listed = agent.controller.seals.strangers();
      assert.deepEqual(
        listed.map((each) => [each.kind, each.name, each.id, each.reason]),
        [
          ["apps/ReplicaSet", "web-1", "d_1", reason],
          ["apps/ReplicaSet", "web-2", "d_2", reason],
          ["apps/ReplicaSet", "web-3", "d_3", reason],
          ["cilium.io/CiliumNetworkPolicy", listed[3]?.name, "env_1a2B3c4D", reason],
        ],
      );
      const unknown = agent.controller.status().seals.map((each) => each.unknownKey + each.otherRegion);
      assert.deepEqual(unknown, [3, 1]);
      assert.equal(agent.controller.objects({ onlyTroubled: true }).length > 0, true);
      await adoptAll(world, agent);
      await world.stop();
    });

  test("after a restore into another cluster are kept, told and adopted", async () => {
    const backup = await worldOf({ seal: createTestSeal({ clusterId: "another" }) }, threeDeployments);
    const saved = await liveObjects(backup);
    await backup.stop();
    const world = await SimulatedRegion.create({ withPods: true });
    await threeDeployments(world);
    await world.api.create(namespaces, { metadata: { name: "acme" } }, {}, never);
    for (const { kind, object } of saved) {
      const { name = "", namespace = "", labels = {}, annotations = {} } = object.metadata ?? {};
      const { status: _, ...content } = object as KubeObject & { status?: unknown };
      const restored = { ...content, metadata: { name, namespace, labels, annotations } };
      await world.api.create(kind, restored, { fieldManager: "velero" }, never);
    }
    await world.clock.advance(60_000);
    const agent = await startAgent(world);
    await world.clock.advance(anHourMs);
    assert.deepEqual(agent.writes.filter(isOther), []);
    const reasons = agent.controller.seals.strangers().map(({ reason }) => reason);
    assert.deepEqual(
      [...new Set(reasons)],
      ["its seal is not valid, and field manager krane never applied it"],
    );
    await adoptAll(world, agent);
    await world.stop();
  });

  test("are adopted with all five objects of a sentinel", async () => {
    const world = await worldOf({ seal: lostKey, name: "sentinels" }, (each) => setSentinel(each, 1));
    const agent = await startAgent(world, { name: "sentinels" });
    await world.clock.advance(60_000);
    assert.deepEqual(agent.writes.filter(isOther), []);
    assert.equal(agent.controller.seals.strangers().length, 5);
    await adoptAll(world, agent);
    await world.stop();
  });

  test("are adopted with a policy of the control plane", async () => {
    const world = await worldOf({ seal: lostKey, name: "cilium" }, async ({ plane }) =>
      plane.admin.setPolicy(region, applyPolicy()),
    );
    const agent = await startAgent(world, { name: "cilium" });
    await world.clock.advance(60_000);
    await adoptAll(world, agent);
    await world.stop();
  });

  test("are adopted with the pull secret of their namespace", async () => {
    const password = new Secret("s3cret-of-the-registry");
    const registry = { host: "registry.example", username: "robot", password };
    const world = await worldOf({ seal: lostKey, registry }, threeDeployments);
    const agent = await startAgent(world, { registry });
    await world.clock.advance(60_000);
    assert.ok(agent.controller.seals.strangers().some(({ kind }) => kind === "Secret"));
    await adoptAll(world, agent);
    await world.stop();
  });

  test("are adopted at a limited pace", async () => {
    const world = await worldOf({ seal: lostKey }, async (each) => {
      for (let index = 1; index <= 40; index++) await each.setDeployment(index);
    });
    const agent = await startAgent(world);
    await world.clock.advance(60_000);
    agent.controller.seals.adopt(agent.controller.seals.strangers());
    await world.clock.advance(500);
    const soon = agent.writes.filter(isOther).length;
    assert.ok(soon > 0 && soon < 30, `${soon} writes at once`);
    await world.until("all are adopted", () => areAdopted(world));
    await world.stop();
  });
});

describe("what is never adopted", () => {
  async function strangersOf(agent: Awaited<ReturnType<typeof startAgent>>, name: string) {
    const found = agent.controller.seals.strangers().find((each) => each.name === name);
    return found ?? assert.fail(`no stranger ${name}`);
  }

  async function assertUntouched(
    world: SimulatedRegion,
    agent: { readonly writes: readonly object[] },
    name: string,
  ) {
    await world.clock.advance(anHourMs);
    const live = await world.api.get(replicaSets, { namespace: "acme", name }, {}, never);
    assert.notEqual(testSeal.read(replicaSets, live?.metadata).kind, "valid");
    assert.equal(JSON.stringify(agent.writes).includes(`acme/${name}`), false);
  }

  const refusal = (agent: Awaited<ReturnType<typeof startAgent>>, stranger: Stranger) => {
    const [outcome] = agent.controller.seals.adopt([stranger]);
    return outcome?.kind === "refused" ? outcome.reason : outcome?.kind;
  };

  test("an object that desired state does not name", async () => {
    const world = await worldOf({ seal: lostKey }, threeDeployments);
    await world.plane.admin.forgetDeployment(region, "d_1");
    const agent = await startAgent(world);
    await world.clock.advance(60_000);
    const stranger = await strangersOf(agent, "web-1");
    assert.deepEqual(
      [stranger.adoptable, stranger.obstacle, stranger.id],
      [false, "not in desired state", ""],
    );
    assert.equal(refusal(agent, stranger), "not in desired state");
    await assertUntouched(world, agent, "web-1");
    await world.stop();
  });

  test("an object that desired state wants deleted", async () => {
    const world = await worldOf({ seal: lostKey }, threeDeployments);
    await world.plane.admin.deleteDeployment(region, "d_1");
    const agent = await startAgent(world);
    await world.clock.advance(60_000);
    assert.equal(refusal(agent, await strangersOf(agent, "web-1")), "not in desired state");
    await assertUntouched(world, agent, "web-1");
    await world.stop();
  });

  test("an object of another id with the same name", async () => {
    const world = await worldOf({ seal: lostKey }, (each) => each.setDeployment(1));
    await world.plane.admin.forgetDeployment(region, "d_1");
    await world.setDeployment(1, { deploymentId: "d_new" });
    const agent = await startAgent(world);
    await world.clock.advance(60_000);
    const reason = 'the live deployment id is "d_1", but "d_new" is desired';
    assert.equal(refusal(agent, await strangersOf(agent, "web-1")), reason);
    await assertUntouched(world, agent, "web-1");
    await world.stop();
  });

  test("an object that was created again since it was listed", async () => {
    const world = await worldOf({ seal: lostKey }, (each) => each.setDeployment(1));
    const agent = await startAgent(world);
    await world.clock.advance(60_000);
    const listed = await strangersOf(agent, "web-1");
    const live = await world.api.get(replicaSets, listed, {}, never);
    await world.api.delete(replicaSets, listed, {}, never);
    const { name = "", namespace = "", labels = {}, annotations = {} } = live?.metadata ?? {};
    const again = { ...live, metadata: { name, namespace, labels, annotations } };
    await world.api.create(replicaSets, again, {}, never);
    await world.clock.advance(1_000);
    assert.match(refusal(agent, listed) ?? "", /created again/);
    await assertUntouched(world, agent, "web-1");
    await world.stop();
  });

  test("an object that was created again after its adoption was allowed", async () => {
    const world = await worldOf({ seal: lostKey }, (each) => each.setDeployment(1));
    const agent = await startAgent(world);
    await world.clock.advance(60_000);
    const listed = await strangersOf(agent, "web-1");
    const live = await world.api.get(replicaSets, listed, {}, never);
    // Its policy is not allowed, so the ReplicaSet has to wait.
    assert.equal(refusal(agent, listed), "allowed");
    await world.api.delete(replicaSets, listed, {}, never);
    const { name = "", namespace = "", labels = {}, annotations = {} } = live?.metadata ?? {};
    const again = { ...live, metadata: { name, namespace, labels, annotations } };
    await world.api.create(replicaSets, again, {}, never);
    const policy = agent.controller.seals.strangers().find(({ kind }) => kind.startsWith("cilium"));
    assert.ok(policy !== undefined && refusal(agent, policy) === "allowed");
    await assertUntouched(world, agent, "web-1");
    assert.equal((await strangersOf(agent, "web-1")).pending, false);
    await world.stop();
  });
});
