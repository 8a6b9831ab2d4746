// What is edited or deleted by hand is put right from the watch alone: resync and replay are switched off.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { createInProcessTransport } from "../../src/dev/in-process-transport.ts";
import { objectPath } from "../../src/kube/client.ts";
import { appsDeployments, namespaces, services } from "../../src/kube/resources.ts";
import type { KubeObject } from "../../src/kube/types.ts";
import { annotationKeys } from "../../src/model/labels.ts";
import { handEdits, putObject } from "../support/hand-edits.ts";
import { testSeal } from "../support/test-seal.ts";
import {
  contentOf,
  isSettled,
  liveDeployment,
  namesOf,
  objectNames,
  partsOf,
  setSentinel,
  startSentinelAgent,
  watchOnly,
} from "./sentinel-agents.ts";
import { region, SimulatedRegion } from "./simulated-region.ts";

const never = new AbortController().signal;

async function settledWorld(options: Parameters<typeof SimulatedRegion.create>[0] = {}) {
  const world = await SimulatedRegion.create(options);
  await setSentinel(world, 1, { replicas: 2 });
  const agent = await startSentinelAgent(world, watchOnly);
  await world.until("it is settled", () => isSettled(agent, 1n));
  await world.clock.advance(1_000);
  return { world, agent };
}

/** Items of a list are known by these, so a changed one is another item, which stays beside krane's. */
const itemKeys = /\.\d+\.(name|containerPort|port|topologyKey|uid)/;

describe("every single field that krane sends, changed or removed by hand, is put right", () => {
  for (const [index, { kind, ref }] of partsOf(1).entries())
    test(`of ${kind.kind} ${ref.name}`, async () => {
      const { world, agent } = await settledWorld();
      const transport = createInProcessTransport(world.server);
      const manifest = agent.writes[index + 1]?.manifest;
      assert.ok(manifest);
      const live = await world.api.get(kind, ref, {}, never);
      let edits = 0;
      for (const { name } of handEdits(manifest, live ?? {})) {
        if (itemKeys.test(name)) continue;
        const current = await world.api.get(kind, ref, {}, never);
        const edit = [...handEdits(manifest, current ?? {})].find((one) => one.name === name);
        assert.ok(edit, name);
        const path = objectPath(kind, ref);
        if ((await putObject(transport, path, edit.object, never)) === undefined) continue;
        edits += 1;
        await world.until(
          `${name} is put right`,
          async () => {
            const repaired = await world.api.get(kind, ref, {}, never);
            // A seal that was edited is replaced by one for this uid.
            const isSealed = testSeal.read(kind, repaired?.metadata).kind === "valid";
            return isSealed && contains(repaired, withoutSeal(manifest));
          },
          5_000,
        );
        // Long enough for the memory of a fight to end.
        await world.clock.advance(1_200_000);
      }
      assert.ok(edits >= 10, `${edits} edits`);
      await transport.close();
      await world.stop();
    });
});

function withoutSeal(manifest: KubeObject): KubeObject {
  const { [annotationKeys.seal]: _, ...annotations } = manifest.metadata?.annotations ?? {};
  return { ...manifest, metadata: { ...manifest.metadata, annotations } };
}

/** Whether everything that was sent is there; what others put beside it in a list with keys is theirs. */
function contains(live: unknown, sent: unknown): boolean {
  if (Array.isArray(sent))
    return Array.isArray(live) && sent.every((item) => live.some((one) => contains(one, item)));
  if (typeof sent !== "object" || sent === null) return live === sent;
  if (typeof live !== "object" || live === null) return false;
  return Object.entries(sent).every(([name, member]) => contains(Reflect.get(live, name), member));
}

describe("each of the five that is deleted by hand comes back", () => {
  for (const { kind, ref } of partsOf(1))
    test(`${kind.kind} ${ref.name}`, async () => {
      const { world } = await settledWorld();
      const expected = await contentOf(world, 1);
      await world.api.delete(kind, ref, {}, never);
      await world.until("all five are there", async () =>
        isDeepStrictEqual(await contentOf(world, 1), expected),
      );
      await world.stop();
    });
});

test("a Deployment that is deleted by hand takes what it owns with it, and all five come back under its new uid", async () => {
  const { world, agent } = await settledWorld({ withPods: true });
  const expected = await contentOf(world, 1);
  const before = (await liveDeployment(world, 1))?.metadata?.uid;
  await world.api.delete(
    appsDeployments,
    { namespace: "sentinel", name: "gate-1" },
    { propagation: "Background" },
    never,
  );
  await world.clock.advance(60_000);
  const after = (await liveDeployment(world, 1))?.metadata?.uid;
  assert.ok(after !== undefined && after !== before);
  assert.deepEqual(await objectNames(world), namesOf(1));
  assert.deepEqual((await contentOf(world, 1)).slice(1), expected.slice(1), "owned by the new one");
  await world.clock.advance(600_000);
  assert.deepEqual(await objectNames(world), namesOf(1));
  assert.deepEqual(agent.controller.objects({ onlyTroubled: true }), []);
  await world.stop();
});

test("a Deployment that is deleted in the foreground is created again once it is gone", async () => {
  const { world } = await settledWorld({ withPods: true });
  const before = (await liveDeployment(world, 1))?.metadata?.uid;
  await world.api.delete(
    appsDeployments,
    { namespace: "sentinel", name: "gate-1" },
    { propagation: "Foreground" },
    never,
  );
  await world.until("a new one is there", async () => {
    const uid = (await liveDeployment(world, 1))?.metadata?.uid;
    return uid !== undefined && uid !== before;
  });
  await world.until("with all the rest", async () => String(await objectNames(world)) === String(namesOf(1)));
  await world.stop();
});

test("the namespace with everything in it comes back", async () => {
  const { world } = await settledWorld({ withPods: true });
  await world.api.delete(namespaces, { name: "sentinel" }, {}, never);
  await world.until("all is gone", async () => (await objectNames(world)).length === 0, 120_000);
  await world.until(
    "all is back",
    async () => String(await objectNames(world)) === String(namesOf(1)),
    300_000,
  );
  await world.stop();
});

test("what is refused to one companion is not refused to the others", async () => {
  const world = await SimulatedRegion.create();
  let isRefusing = true;
  world.server.faults.intercept(({ method, path }) =>
    isRefusing && method === "PATCH" && path.endsWith("/services/gate-1")
      ? { kind: "whole", status: 422, body: { kind: "Status", code: 422, reason: "Invalid", message: "no" } }
      : undefined,
  );
  await setSentinel(world, 1);
  const agent = await startSentinelAgent(world, watchOnly);
  await world.until("it is parked", () => agent.controller.status().parked === 1);
  assert.deepEqual(
    await objectNames(world),
    namesOf(1).filter((name) => name !== "Service gate-1"),
  );
  isRefusing = false;
  await world.until("all is there", async () => (await objectNames(world)).length === 5, 900_000);
  assert.deepEqual(agent.controller.objects({ onlyTroubled: true }), []);
  await world.stop();
});

test("an owner reference that is taken away or replaced is put right", async () => {
  const { world } = await settledWorld();
  const uid = (await liveDeployment(world, 1))?.metadata?.uid;
  const ref = { namespace: "sentinel", name: "gate-1" };
  const owners = async () =>
    (await world.api.get(services, ref, {}, never))?.metadata?.ownerReferences?.map((owner) => owner.uid);
  const transport = createInProcessTransport(world.server);
  for (const ownerReferences of [
    [],
    [{ apiVersion: "apps/v1", kind: "Deployment", name: "gate-1", uid: "another" }],
  ]) {
    const live = (await world.api.get<KubeObject>(services, ref, {}, never)) ?? {};
    const edited = { ...live, metadata: { ...live.metadata, ownerReferences } };
    assert.ok(await putObject(transport, objectPath(services, ref), edited, never));
    await world.until("it has its owner", async () => (await owners())?.includes(uid ?? "") === true);
    await world.clock.advance(1_200_000);
  }
  await transport.close();
  await world.stop();
});

test("a restart by hand is let through, and something else beside its mark is removed", async () => {
  const { world, agent } = await settledWorld();
  const annotate = (annotations: Record<string, string>) =>
    world.api.apply(
      appsDeployments,
      {
        metadata: { namespace: "sentinel", name: "gate-1" },
        spec: { template: { metadata: { annotations } } },
      } as never,
      { fieldManager: "kubectl-rollout", force: true },
      never,
    );
  const isThere = async (name: string) =>
    (await liveDeployment(world, 1))?.spec?.template?.metadata?.annotations?.[name] !== undefined;
  const writes = agent.writes.length;
  const restart = { "kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z" };
  await annotate(restart);
  await world.clock.advance(120_000);
  assert.ok(await isThere("kubectl.kubernetes.io/restartedAt"));
  assert.equal(agent.writes.length, writes);
  await annotate({ ...restart, "example.com/other": "1" });
  await world.until("the other is removed", async () => !(await isThere("example.com/other")));
  assert.ok(await isThere("kubectl.kubernetes.io/restartedAt"));
  await world.stop();
});

test("a port of a Service that is edited by hand, which no apply can undo, is put back", async () => {
  const { world, agent } = await settledWorld();
  const ref = { namespace: "sentinel", name: "gate-1" };
  const transport = createInProcessTransport(world.server);
  const live = (await world.api.get(services, ref, {}, never)) ?? {};
  const edited = {
    ...live,
    spec: { ...live.spec, ports: [{ port: 8041, targetPort: 8040, protocol: "TCP" }] },
  };
  assert.ok(await putObject(transport, objectPath(services, ref), edited, never));
  await world.until("it is put back", async () => {
    const ports = (await world.api.get(services, ref, {}, never))?.spec?.ports ?? [];
    return isDeepStrictEqual(
      ports.map(({ port }) => port),
      [8040],
    );
  });
  await world.until("nothing is wrong", () => agent.controller.objects({ onlyTroubled: true }).length === 0);
  await transport.close();
  await world.stop();
});

test("of a state that the server never took, nothing gets in past its refusal", async () => {
  const { world, agent } = await settledWorld();
  let isRefusing = true;
  world.server.faults.intercept(({ method, path }) =>
    isRefusing && method === "PATCH" && path.endsWith("/deployments/gate-1")
      ? { kind: "whole", status: 422, body: { kind: "Status", code: 422, reason: "Invalid", message: "no" } }
      : undefined,
  );
  await setSentinel(world, 1, { image: "registry.example/acme/sentinel:bad" });
  await world.until("it is parked", () => agent.controller.status().parked === 1);
  assert.deepEqual(
    agent.writes.filter(({ verb }) => verb === "patch"),
    [],
  );
  isRefusing = false;
  await world.stop();
});

test("a part that the server refuses to show or to delete keeps none of the others", async () => {
  const { world } = await settledWorld();
  world.server.faults.intercept(({ method, path }) =>
    method === "DELETE" && path.includes("/ciliumnetworkpolicies/")
      ? {
          kind: "whole",
          status: 403,
          body: { kind: "Status", code: 403, reason: "Forbidden", message: "no" },
        }
      : undefined,
  );
  await world.plane.admin.deleteSentinel(region, "se_1");
  await world.until("only what is refused is left", async () => (await objectNames(world)).length === 1);
  await world.stop();
});
