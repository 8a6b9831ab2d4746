// The route controller in a whole region: a Service and a policy that follow the control plane.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Service } from "kubernetes-types/core/v1.js";
import { ApplyRoute_Expose as Expose } from "../../src/gen/ctrl/v1/route_pb.ts";
import {
  ObjectStatus_Outcome as Outcome,
  StreamStatus_State as State,
} from "../../src/gen/krane/v1/agent_pb.ts";
import { type ControllerOf, kinds } from "../../src/kinds/kinds.ts";
import { ciliumNetworkPolicies, namespaces, services } from "../../src/kube/resources.ts";
import { labelKeys } from "../../src/model/labels.ts";
import { applyRoute } from "../support/route-messages.ts";
import { defaultOptions, region, type SimulatedAgent, SimulatedRegion } from "./simulated-region.ts";

const createRouteController = await kinds.route.loadController();
const never = new AbortController().signal;
const ref = { namespace: "acme", name: "web" };
const policyRef = { namespace: "acme", name: "allow-route-ingress-web" };

type Agent = SimulatedAgent<ControllerOf<"route">>;

async function startRoutes(
  world: SimulatedRegion,
  overrides: Partial<typeof defaultOptions> = {},
): Promise<Agent> {
  const options = { ...defaultOptions, ...overrides };
  const agent = world.createAgentOf("routes", (deps) => createRouteController(options, deps));
  await world.resolved(agent.controller.start());
  return agent;
}

const service = (world: SimulatedRegion) => world.api.get(services, ref, {}, never);
const policy = (world: SimulatedRegion) => world.api.get(ciliumNetworkPolicies, policyRef, {}, never);

function leadsTo(live: Service | undefined): string | undefined {
  return live?.spec?.selector?.[labelKeys.deploymentId];
}

const first = { deploymentId: "app_web-1", port: 8080 };
const second = { deploymentId: "app_web-2", port: 9090 };
const to = (target: typeof first, ...backends: (typeof first)[]) =>
  applyRoute({ deploymentId: target.deploymentId, backends });

async function withRoute() {
  const world = await SimulatedRegion.create();
  await world.plane.admin.setRoute(region, to(first, first));
  const agent = await startRoutes(world);
  await world.until(
    "it leads to the first release",
    async () => leadsTo(await service(world)) === first.deploymentId,
  );
  return { world, agent };
}

test("a Service leads to the wanted deployment, keeps its identity when it moves, and the control plane sees where it leads", async () => {
  const { world } = await withRoute();
  const report = () => world.plane.admin.routeReport(region, "rt_1");
  await world.until("it is reported", async () => (await report())?.deploymentId === first.deploymentId);
  const before = await service(world);
  assert.deepEqual(
    before?.spec?.ports?.map(({ port, targetPort }) => [port, targetPort]),
    [[80, 8080]],
  );
  await world.plane.admin.setRoute(region, to(first, first, second));
  await world.plane.admin.setRoute(region, to(second, first, second));
  await world.until("it has moved", async () => leadsTo(await service(world)) === second.deploymentId);
  const after = await service(world);
  assert.equal(after?.metadata?.uid, before?.metadata?.uid);
  assert.equal(after?.spec?.ports?.[0]?.targetPort, 9090);
  await world.until("that is reported", async () => (await report())?.deploymentId === second.deploymentId);
  await world.plane.admin.deleteRoute(region, "rt_1");
  await world.until("both are gone", async () => !(await service(world)) && !(await policy(world)));
  await world.until("that is reported too", async () => (await report())?.exists === false);
  await world.stop();
});

test("the policy is there before the Service leads to a backend, and admits nobody once nobody may come in", async () => {
  const { world, agent } = await withRoute();
  const kindsWritten = agent.writes.map(({ kind }) => kind);
  assert.ok(
    kindsWritten.indexOf("CiliumNetworkPolicy") < kindsWritten.indexOf("Service"),
    kindsWritten.join(),
  );
  await world.plane.admin.setRoute(
    region,
    applyRoute({ deploymentId: first.deploymentId, backends: [first], expose: Expose.UNSPECIFIED }),
  );
  const specs = async () => JSON.stringify(((await policy(world)) as { readonly specs?: unknown })?.specs);
  await world.until("it selects no pod", async () => !(await specs()).includes(first.deploymentId));
  assert.equal(leadsTo(await service(world)), first.deploymentId);
  await world.stop();
});

test("what somebody changes on either object is put back, and in sync it writes nothing", async () => {
  const { world, agent } = await withRoute();
  await world.clock.advance(130_000);
  const written = agent.writes.length;
  await world.clock.advance(600_000);
  assert.equal(agent.writes.length, written);
  const by = { fieldManager: "meddler", force: true };
  const selector = { [labelKeys.deploymentId]: "d_other" };
  await world.api.apply(services, { metadata: ref, spec: { selector } }, by, never);
  await world.until("it leads back", async () => leadsTo(await service(world)) === first.deploymentId);
  await world.api.apply(
    ciliumNetworkPolicies,
    { metadata: policyRef, specs: [{ endpointSelector: {}, ingress: [{}] }] } as never,
    by,
    never,
  );
  const specs = async () => JSON.stringify(((await policy(world)) as { readonly specs?: unknown })?.specs);
  await world.until("it admits what it did", async () => (await specs()).includes(first.deploymentId));
  await world.stop();
});

test("a Service of that name that is not krane's stays as it is, and is shown as a conflict", async () => {
  const world = await SimulatedRegion.create();
  await world.api.apply(
    namespaces,
    { metadata: { name: "acme" } },
    { fieldManager: "kubectl", force: true },
    never,
  );
  const spec = { selector: { app: "theirs" }, ports: [{ port: 80 }] };
  await world.api.apply(services, { metadata: ref, spec }, { fieldManager: "kubectl", force: true }, never);
  await world.plane.admin.setRoute(region, to(first, first));
  const agent = await startRoutes(world);
  const status = () => agent.controller.objects().find(({ key }) => key === "acme/web");
  await world.until("it is a conflict", () => status()?.outcome === Outcome.CONFLICT);
  await world.clock.advance(600_000);
  assert.deepEqual((await service(world))?.spec?.selector, { app: "theirs" });
  await world.plane.admin.deleteRoute(region, "rt_1");
  await world.clock.advance(600_000);
  assert.deepEqual((await service(world))?.spec?.selector, { app: "theirs" });
  await world.stop();
});

test("with a control plane that is too old for routes, it rests, and deletes and says nothing", async () => {
  const asked: string[] = [];
  let isOld = true;
  const old = await SimulatedRegion.create({
    interceptors: [
      (next) => async (request) => {
        asked.push(request.method.name);
        if (isOld && /Route/.test(request.method.name))
          throw new ConnectError("no such method", Code.Unimplemented);
        return next(request);
      },
    ],
  });
  const resting = await startRoutes(old);
  await old.until("it rests", () => resting.controller.status().stream?.state === State.UNSUPPORTED);
  await old.clock.advance(1_800_000);
  assert.equal(resting.controller.status().stream?.state, State.UNSUPPORTED);
  assert.deepEqual(
    [...new Set(asked)].filter((name) => !/Digest/.test(name)),
    ["WatchRoutes"],
  );
  assert.ok(asked.length < 70, `${asked.length} calls in half an hour`);
  assert.equal(resting.controller.status().breaker?.state, 1);
  isOld = false;
  await old.plane.admin.setRoute(region, to(first, first));
  await old.until("it goes on", async () => leadsTo(await service(old)) === first.deploymentId, 120_000);
  await old.stop();
});
