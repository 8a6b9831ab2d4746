// Anybody who may edit ReplicaSets can write every annotation of krane's on one, in krane's name. None of that is an
// order, whether or not the agent takes orders.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Interceptor } from "@connectrpc/connect";
import type { ReplicaSet } from "kubernetes-types/apps/v1.js";
import { desiredReplicaSet } from "../../src/kinds/deployment/pod-template.ts";
import { parseApplyDeployment } from "../../src/kinds/deployment/spec.ts";
import { replicaSets } from "../../src/kube/resources.ts";
import { fieldManager } from "../../src/model/labels.ts";
import { forgedOrder } from "../support/forged-order.ts";
import { deployment, region, SimulatedRegion } from "./simulated-region.ts";

const never = new AbortController().signal;
const halfHourMs = 1_800_000;
const first = { namespace: "acme", name: "web-1" };
const highestVersion = 2n ** 63n - 1n;

function forgedReplicaSet(version: bigint): ReplicaSet {
  const message = deployment(1, { replicas: 5 });
  const parsed = parseApplyDeployment(message, { registries: [] });
  assert.ok(parsed.kind === "valid");
  const manifest = desiredReplicaSet(parsed.spec, { secrets: { audience: "krane" } });
  const annotations = { ...manifest.metadata?.annotations, ...forgedOrder(message, version) };
  return { ...manifest, metadata: { ...manifest.metadata, annotations } };
}

async function createWorld(hasDigests = true) {
  const asked = new Set<string>();
  const listen: Interceptor = (next) => (call) => {
    const { deploymentId } = call.message as { deploymentId?: string };
    if (/^GetDesired.*State$/.test(call.method.name)) asked.add(deploymentId ?? "");
    return next(call);
  };
  const world = await SimulatedRegion.create({ interceptors: [listen], hasDigests });
  await world.setDeployment(2);
  const forge = (version: bigint) =>
    world.api.apply(replicaSets, forgedReplicaSet(version), { fieldManager, force: true }, never);
  const replicas = async () => (await world.api.get(replicaSets, first, {}, never))?.spec?.replicas;
  return { world, asked, forge, replicas };
}

for (const [what, overrides] of [
  ["takes orders", {}],
  ["takes no orders", { takesOrders: false }],
] as const)
  describe(`an order that somebody wrote onto a ReplicaSet, for an agent that ${what}`, () => {
    for (const [version, hasDigests] of [
      [0n, true],
      [0n, false],
      [highestVersion, true],
      [highestVersion, false],
    ] as const) {
      const how = hasDigests ? "by digest" : "without digests";
      test(`is not believed at version ${version}, and does not come back after a manual delete (${how})`, async () => {
        const { world, asked, forge } = await createWorld(hasDigests);
        const before = await world.startAgent(overrides);
        await world.until("the stream is followed", async () => (await world.replicaSets()).length === 1);
        await before.stop();
        await forge(version);
        asked.clear();
        const agent = await world.startAgent(overrides);
        await world.clock.advance(120_000);
        assert.equal(agent.controller.desired.get("acme/web-1"), undefined);
        // By digest, only the forged one differs.
        const expected = hasDigests ? ["d_1"] : ["d_1", "d_2"];
        assert.deepEqual([...asked].sort(), expected, "it is not exempt from the absence check");
        await world.api.delete(replicaSets, first, {}, never);
        await world.clock.advance(halfHourMs);
        assert.deepEqual(await world.replicaSetNames(), ["web-2"]);
        await world.stop();
      });
    }

    test("neither beats a version of the control plane nor outlives its deletion", async () => {
      const { world, forge, replicas } = await createWorld();
      await world.setDeployment(1, { replicas: 1 });
      const before = await world.startAgent(overrides);
      await world.until("it is there", async () => (await replicas()) === 1);
      await before.stop();
      await forge(highestVersion);
      const agent = await world.startAgent(overrides);
      await world.until("the control plane's version is applied", async () => (await replicas()) === 1);
      // Also under a running agent.
      await forge(highestVersion);
      await world.until("it is applied again", async () => (await replicas()) === 1);
      await world.plane.admin.deleteDeployment(region, "d_1");
      await world.until("its deletion is followed", async () => (await replicas()) === undefined);
      await forge(highestVersion);
      await world.until("it is deleted again", async () => (await replicas()) === undefined);
      assert.equal(agent.controller.desired.get("acme/web-1")?.want.kind, "delete");
      await world.stop();
    });
  });
