// What the seal decides: which objects krane adopts, repairs, deletes and leaves alone (K4, K5, K11).
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { ReplicaSet } from "kubernetes-types/apps/v1.js";
import { createInProcessTransport } from "../../src/dev/in-process-transport.ts";
import { ObjectStatus_Outcome as Outcome } from "../../src/gen/krane/v1/agent_pb.ts";
import type { KindControllerOptions } from "../../src/kinds/kind.ts";
import { kinds } from "../../src/kinds/kinds.ts";
import { objectPath } from "../../src/kube/client.ts";
import { ciliumNetworkPolicies, pods, replicaSets } from "../../src/kube/resources.ts";
import type { KubeObject, ResourceKind } from "../../src/kube/types.ts";
import { annotationKeys } from "../../src/model/labels.ts";
import type { Seal } from "../../src/model/seal.ts";
import { putObject } from "../support/hand-edits.ts";
import { createTestSeal, otherSealKey, testSeal, testSealKey } from "../support/test-seal.ts";
import { defaultOptions, region, SimulatedRegion } from "./simulated-region.ts";

const createDeploymentController = await kinds.deployment.loadController();
const never = new AbortController().signal;
const watchOnly = { resyncMs: 0, replayMs: 0 };
const anHourMs = 3_600_000;

async function startAgent(
  world: SimulatedRegion,
  seal: Seal = testSeal,
  overrides: Partial<KindControllerOptions> = {},
) {
  const agent = world.createAgentOf("deployments", (deps) =>
    createDeploymentController({ ...defaultOptions, ...overrides }, { ...deps, seal }),
  );
  await world.resolved(agent.controller.start());
  return agent;
}

/** A world with this many deployments that an agent has applied and left. */
async function worldAfterAgent(count: number, seal?: Seal): Promise<SimulatedRegion> {
  const world = await SimulatedRegion.create({ withPods: true });
  for (let index = 1; index <= count; index++) await world.setDeployment(index);
  const agent = await startAgent(world, seal);
  await world.until("all are settled", () => agent.controller.status().stream?.cursor === BigInt(count));
  await world.clock.advance(10_000);
  await agent.stop();
  return world;
}

const everyKind: readonly ResourceKind[] = [replicaSets, ciliumNetworkPolicies];

async function liveObjects(world: SimulatedRegion): Promise<{ kind: ResourceKind; object: KubeObject }[]> {
  const lists = everyKind.map(async (kind) => {
    const { items } = await world.api.list(kind, { namespace: "acme" }, never);
    return items.map((object) => ({ kind, object }));
  });
  return (await Promise.all(lists)).flat();
}

async function readings(world: SimulatedRegion, seal: Seal = testSeal): Promise<readonly string[]> {
  return (await liveObjects(world)).map(({ kind, object }) => seal.read(kind, object.metadata).kind);
}

async function editAnnotations(
  world: SimulatedRegion,
  change: (annotations: Readonly<Record<string, string>>) => Record<string, string>,
): Promise<void> {
  const transport = createInProcessTransport(world.server, { userAgent: "kubectl" });
  for (const { kind, object } of await liveObjects(world)) {
    const { name = "", namespace = "" } = object.metadata ?? {};
    const edited = {
      ...object,
      metadata: { ...object.metadata, annotations: change(object.metadata?.annotations ?? {}) },
    };
    assert.ok(await putObject(transport, objectPath(kind, { namespace, name }), edited, never));
  }
  await transport.close();
}

const stripSeals = (world: SimulatedRegion) =>
  editAnnotations(world, ({ [annotationKeys.seal]: _, ...annotations }) => annotations);

async function podUids(world: SimulatedRegion): Promise<readonly (string | undefined)[]> {
  const { items } = await world.api.list(pods, { namespace: "acme" }, never);
  return items.map(({ metadata }) => metadata?.uid).sort();
}

describe("objects of an older krane, which have no seal", () => {
  test("are adopted with one write each, and no pod is replaced", async () => {
    const world = await worldAfterAgent(3);
    await stripSeals(world);
    const before = await podUids(world);
    const agent = await startAgent(world);
    await world.until("all are sealed", async () =>
      (await readings(world)).every((reading) => reading === "valid"),
    );
    const writes = agent.writes.length;
    assert.equal(writes, (await liveObjects(world)).length);
    await world.clock.advance(anHourMs);
    assert.equal(agent.writes.length, writes, "sealed once");
    assert.deepEqual(await podUids(world), before);
    const adopted = (await liveObjects(world)).map(({ kind, object }) => {
      const reading = testSeal.read(kind, object.metadata);
      return reading.kind === "valid" && reading.isAdopted;
    });
    assert.ok(adopted.every((one) => one));
    await world.stop();
  });

  test("keep their ports open until desired state names them", async () => {
    const world = await worldAfterAgent(2);
    await stripSeals(world);
    const portsOf = async () => (await world.policies()).map(({ spec }) => JSON.stringify(spec));
    const before = await portsOf();
    world.plane.faults.pauseStreams();
    await startAgent(world, testSeal, watchOnly);
    await world.clock.advance(anHourMs);
    assert.deepEqual(await portsOf(), before);
    await world.stop();
  });

  test("are sealed at a limited pace, and count as up to date meanwhile", async () => {
    const world = await worldAfterAgent(40);
    await stripSeals(world);
    const agent = await startAgent(world);
    await world.until("all are settled", () => agent.controller.status().stream?.cursor === 40n);
    const soon = agent.writes.length;
    assert.ok(soon < 30, `${soon} writes at once`);
    assert.deepEqual(agent.controller.objects({ onlyTroubled: true }), []);
    await world.clock.advance(10_000);
    assert.ok((await readings(world)).every((reading) => reading === "valid"));
    await world.stop();
  });

  test("are not deleted because the control plane does not know them, until a person allows it", async () => {
    const world = await worldAfterAgent(10);
    await stripSeals(world);
    await world.plane.admin.forgetDeployment(region, "d_1");
    const agent = await startAgent(world);
    await world.clock.advance(anHourMs);
    assert.equal((await world.replicaSets()).length, 10);
    const [blocked] = agent.controller.blockedDeletions();
    assert.deepEqual([blocked?.key, blocked?.reason], ["acme/web-1", "it has no seal"]);
    assert.ok(agent.controller.releaseDeletion("acme/web-1"));
    await world.until("it is deleted", async () => (await world.replicaSets()).length === 9);
    await world.stop();
  });

  test("are deleted by an explicit Delete", async () => {
    const world = await worldAfterAgent(2);
    await stripSeals(world);
    await world.plane.admin.deleteDeployment(region, "d_1");
    const agent = await startAgent(world);
    await world.until("it is deleted", async () => (await world.replicaSets()).length === 1);
    assert.deepEqual(agent.controller.blockedDeletions(), []);
    await world.stop();
  });
});

describe("a seal that somebody strips or edits", () => {
  for (const [what, change] of [
    ["stripped", ({ [annotationKeys.seal]: _, ...others }: Readonly<Record<string, string>>) => others],
    [
      "edited",
      (annotations: Readonly<Record<string, string>>) => ({
        ...annotations,
        [annotationKeys.seal]: `${annotations[annotationKeys.seal]}x`,
      }),
    ],
  ] as const)
    test(`is put back at once when ${what}`, async () => {
      const world = await SimulatedRegion.create();
      await world.setDeployment(1);
      const agent = await startAgent(world, testSeal, watchOnly);
      await world.until("it is settled", () => agent.controller.status().stream?.cursor === 1n);
      await world.clock.advance(5_000);
      await editAnnotations(world, change);
      await world.until("both are sealed again", async () =>
        (await readings(world)).every((reading) => reading === "valid"),
      );
      await world.stop();
    });
});

describe("the objects of another krane", () => {
  for (const [what, other, reason] of [
    [
      "for another region",
      createTestSeal({ region: "eu-1.aws" }),
      'ReplicaSet acme/web-1 is not krane\'s: it belongs to the region "eu-1.aws"',
    ],
    [
      "with another key",
      createTestSeal({ keys: [otherSealKey] }),
      `ReplicaSet acme/web-1 is not krane's: it is sealed with the unknown key "${otherSealKey.id}"`,
    ],
  ] as const) {
    test(`${what} are neither changed nor deleted, and the conflict is shown`, async () => {
      const world = await worldAfterAgent(1, other);
      const before = await liveObjects(world);
      const agent = await startAgent(world);
      await world.clock.advance(anHourMs);
      await world.setDeployment(1, { replicas: 5 });
      await world.clock.advance(anHourMs);
      const conflicts = agent.controller.objects({ onlyTroubled: true });
      const sets = conflicts.find(({ key }) => key === "acme/web-1");
      assert.ok(sets?.outcome === Outcome.CONFLICT || sets?.reason.includes("is not krane's"), sets?.reason);
      assert.ok(
        conflicts.some((one) => one.reason.includes(reason.split(": ")[1] ?? "")),
        JSON.stringify(conflicts.map((one) => one.reason)),
      );
      await world.plane.admin.deleteDeployment(region, "d_1");
      await world.clock.advance(anHourMs);
      assert.deepEqual(
        (await liveObjects(world)).map(({ object }) => object.metadata?.uid),
        before.map(({ object }) => object.metadata?.uid),
      );
      assert.deepEqual(
        agent.writes.filter(({ kind }) => kind !== "Namespace" && kind !== "Event"),
        [],
      );
      await world.stop();
    });
  }

  test("are not deleted by confirmed absence, and do not count when it is judged", async () => {
    const world = await worldAfterAgent(6, createTestSeal({ region: "eu-1.aws" }));
    for (let index = 1; index <= 6; index++) await world.plane.admin.forgetDeployment(region, `d_${index}`);
    const agent = await startAgent(world);
    await world.clock.advance(anHourMs);
    assert.equal((await world.replicaSets()).length, 6);
    assert.deepEqual(agent.controller.blockedDeletions(), []);
    assert.deepEqual(agent.writes, []);
    await world.stop();
  });
});

test("after a new key was added, every object is sealed again with one write", async () => {
  const world = await worldAfterAgent(3);
  const rotated = createTestSeal({ keys: [testSealKey, otherSealKey] });
  const agent = await startAgent(world, rotated);
  const underOldKey = () =>
    agent.controller.status().seals.map(({ kind, older }) => [kind, older[0]?.keyId, older[0]?.objects]);
  const { id } = testSealKey;
  assert.deepEqual(underOldKey()[0], ["apps/ReplicaSet", id, 3]);
  await world.clock.advance(10_000);
  assert.deepEqual(underOldKey(), [
    ["apps/ReplicaSet", id, 0],
    ["cilium.io/CiliumNetworkPolicy", id, 0],
  ]);
  assert.ok(agent.controller.status().seals.every(({ synced, current }) => synced && current > 0));
  const onlyNew = createTestSeal({ keys: [otherSealKey] });
  assert.ok((await readings(world, onlyNew)).every((reading) => reading === "valid"));
  const writes = agent.writes.length;
  assert.equal(writes, (await liveObjects(world)).length);
  await world.clock.advance(anHourMs);
  assert.equal(agent.writes.length, writes);
  await world.stop();
});

test("a ReplicaSet with krane's marks and a copied seal is not krane's unless desired state names it", async () => {
  const world = await worldAfterAgent(1);
  const [live] = await world.replicaSets();
  const { uid: _, resourceVersion: __, managedFields: ___, ...metadata } = live?.metadata ?? {};
  const copy = { ...live, metadata: { ...metadata, name: "copy" } } as ReplicaSet;
  await world.api.apply(replicaSets, copy, { fieldManager: "krane", force: true }, never);
  const agent = await startAgent(world);
  await world.clock.advance(anHourMs);
  const copied = await world.api.get(replicaSets, { namespace: "acme", name: "copy" }, {}, never);
  assert.ok(copied, "not deleted by absence");
  assert.equal(testSeal.read(replicaSets, copied.metadata).kind, "broken");
  assert.equal(
    agent.writes.some(({ key }) => key === "acme/copy"),
    false,
  );
  await world.stop();
});
