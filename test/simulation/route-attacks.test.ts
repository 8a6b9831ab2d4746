// What a namespace admin does to the two objects of a route, and what krane says about it meanwhile.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Service } from "kubernetes-types/core/v1.js";
import { createInProcessTransport } from "../../src/dev/in-process-transport.ts";
import { ApplyRoute_Expose as Expose } from "../../src/gen/ctrl/v1/route_pb.ts";
import { kinds } from "../../src/kinds/kinds.ts";
import { objectPath } from "../../src/kube/client.ts";
import { ciliumNetworkPolicies, services } from "../../src/kube/resources.ts";
import type { KubeObject, ObjectMeta, ResourceKind } from "../../src/kube/types.ts";
import { annotationKeys } from "../../src/model/labels.ts";
import { putObject } from "../support/hand-edits.ts";
import { applyRoute } from "../support/route-messages.ts";
import { createTestSeal, otherSealKey } from "../support/test-seal.ts";
import { defaultOptions, region, SimulatedRegion } from "./simulated-region.ts";

const createRouteController = await kinds.route.loadController();
const never = new AbortController().signal;
const ref = { namespace: "acme", name: "web" };
const policyRef = { namespace: "acme", name: "allow-route-ingress-web" };
const otherSeal = createTestSeal({ keys: [otherSealKey] });

async function startRoutes(world: SimulatedRegion) {
  const options = { ...defaultOptions, resyncMs: 0, replayMs: 0 };
  const agent = world.createAgentOf("routes", (deps) => createRouteController(options, deps));
  await world.resolved(agent.controller.start());
  const reason = () => agent.controller.objects({ onlyTroubled: true })[0]?.reason ?? "";
  return { ...agent, reason };
}

async function withRoute() {
  const world = await SimulatedRegion.create();
  const want = (expose: Expose) => world.plane.admin.setRoute(region, applyRoute({ expose }));
  await want(Expose.ENVIRONMENT);
  const agent = await startRoutes(world);
  await world.until("it is reported", async () => (await lastReported(world))?.exists === true);
  return { world, agent, want };
}

const service = (world: SimulatedRegion) => world.api.get(services, ref, {}, never);
const policy = (world: SimulatedRegion) => world.api.get(ciliumNetworkPolicies, policyRef, {}, never);

const lastReported = (world: SimulatedRegion) => world.plane.admin.routeReport(region, "rt_1");

/** Writes an object as kubectl does. */
async function edit<T extends KubeObject>(
  world: SimulatedRegion,
  kind: ResourceKind<T>,
  at: typeof ref,
  change: (metadata: ObjectMeta) => ObjectMeta,
): Promise<void> {
  const transport = createInProcessTransport(world.server, { userAgent: "kubectl" });
  const live = (await world.api.get(kind, at, {}, never)) ?? assert.fail("it is gone");
  const edited = { ...live, metadata: change(live.metadata ?? {}) };
  assert.ok(await putObject(transport, objectPath(kind, at), edited, never));
  await transport.close();
}

for (const isRunning of [true, false])
  test(`a Service whose seal was replaced ${isRunning ? "under" : "before the start of"} an agent is not reported as gone, nor called deleted`, async () => {
    const { world, agent } = await withRoute();
    if (!isRunning) await agent.stop();
    const seal = otherSeal.write({ kind: services, ...ref }, {});
    await edit(world, services, ref, (metadata) => ({
      ...metadata,
      annotations: { ...metadata.annotations, [annotationKeys.seal]: seal },
    }));
    const { reason } = isRunning ? agent : await startRoutes(world);
    await world.until("it is told", () => /is not krane's: /.test(reason()));
    await world.plane.admin.deleteRoute(region, "rt_1");
    await world.until("so it is of the Delete", () => /is not deleted: /.test(reason()));
    await world.clock.advance(120_000);
    assert.ok(await service(world));
    assert.equal((await lastReported(world))?.exists, true);
    await world.stop();
  });

test("a route whose policy a finalizer holds is not reported as gone", async () => {
  const { world, agent } = await withRoute();
  const hold = (finalizers: string[]) =>
    edit(world, ciliumNetworkPolicies, policyRef, (metadata) => ({ ...metadata, finalizers }));
  await hold(["example.com/hold"]);
  await world.plane.admin.deleteRoute(region, "rt_1");
  await world.until("its Service is gone", async () => (await service(world)) === undefined);
  await world.clock.advance(120_000);
  assert.ok(await policy(world));
  assert.equal((await lastReported(world))?.exists, true);
  assert.match([...agent.controller.failures().values()].join(), /example\.com\/hold/);
  await hold([]);
  await world.until("that is reported", async () => (await lastReported(world))?.exists === false);
  assert.equal(await policy(world), undefined);
  await world.stop();
});

for (const isRunning of [true, false])
  test(`objects that lost all labels ${isRunning ? "under" : "before the start of"} an agent are found by a Delete`, async () => {
    const { world, agent } = await withRoute();
    if (!isRunning) await agent.stop();
    const strip = ({ labels: _, ...metadata }: ObjectMeta) => metadata;
    await edit(world, services, ref, strip);
    await edit(world, ciliumNetworkPolicies, policyRef, strip);
    await world.plane.admin.deleteRoute(region, "rt_1");
    if (!isRunning) await startRoutes(world);
    await world.until("both are gone", async () => !(await service(world)) && !(await policy(world)));
    await world.until("that is reported", async () => (await lastReported(world))?.exists === false);
    await world.stop();
  });

test("a policy that lost its labels admits nobody once nobody may come in", async () => {
  const { world, want } = await withRoute();
  await edit(world, ciliumNetworkPolicies, policyRef, ({ labels: _, ...metadata }) => metadata);
  await want(Expose.UNSPECIFIED);
  await world.until("it selects no pod", async () => {
    const { specs } = ((await policy(world)) ?? {}) as { readonly specs?: unknown };
    return !JSON.stringify(specs ?? []).includes("d_1a2B3c4D");
  });
  await world.stop();
});

/** As somebody can create it again who has read it: with its seal. */
async function copyOf(world: SimulatedRegion): Promise<Service> {
  const live = (await service(world)) ?? assert.fail("no Service");
  const { labels = {}, annotations = {} } = live.metadata ?? {};
  const { clusterIP: _, clusterIPs: __, ...spec } = live.spec ?? {};
  return { ...live, metadata: { ...ref, labels, annotations }, spec };
}

test("a Service that is made again without an address is told, and it is right after it was deleted", async () => {
  const { world, agent } = await withRoute();
  const { spec, ...copy } = await copyOf(world);
  await agent.stop();
  await world.api.delete(services, ref, {}, never);
  await world.api.create(services, { ...copy, spec: { ...spec, clusterIP: "None" } }, {}, never);
  const { controller, reason } = await startRoutes(world);
  await world.until("that is told", () => /Service acme\/web is headless/.test(reason()));
  assert.equal((await service(world))?.spec?.clusterIP, "None");
  assert.deepEqual(controller.status().stream?.unsettled, []);
  await world.api.delete(services, ref, {}, never);
  await world.until("it has an address", async () => {
    const { clusterIP = "None" } = (await service(world))?.spec ?? {};
    return clusterIP !== "None";
  });
  await world.until("all is well", () => reason() === "");
  await world.stop();
});

test("a Service that is put back after its route was deleted, with its seal, is deleted again", async () => {
  const { world } = await withRoute();
  const copy = await copyOf(world);
  await world.plane.admin.deleteRoute(region, "rt_1");
  await world.until("it is gone", async () => (await service(world)) === undefined);
  await world.api.create(services, copy, { fieldManager: "krane" }, never);
  await world.until("it is gone again", async () => (await service(world)) === undefined);
  await world.stop();
});

test("a copy of a Service with its seal and all marks changes no report, and stays", async () => {
  const { world } = await withRoute();
  const before = await lastReported(world);
  const { metadata, ...rest } = await copyOf(world);
  const copy = { ...rest, metadata: { ...metadata, name: "copy" } };
  await world.api.create(services, copy, { fieldManager: "krane" }, never);
  await world.clock.advance(120_000);
  assert.deepEqual(await lastReported(world), before);
  assert.ok(await world.api.get(services, { ...ref, name: "copy" }, {}, never));
  await world.stop();
});
