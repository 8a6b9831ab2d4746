// Routes that the Gateway exposes: an HTTPRoute with their hostnames, and a second Service while requests move.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ApplyRoute_Expose as Expose } from "../../src/gen/ctrl/v1/route_pb.ts";
import { ObjectStatus_Outcome as Outcome } from "../../src/gen/krane/v1/agent_pb.ts";
import { kinds } from "../../src/kinds/kinds.ts";
import {
  ciliumNetworkPolicies,
  customResourceDefinitions,
  httpRoutes,
  namespaces,
  services,
} from "../../src/kube/resources.ts";
import { labelKeys } from "../../src/model/labels.ts";
import { httpRouteDefinition } from "../support/http-route-definition.ts";
import { applyRoute } from "../support/route-messages.ts";
import { defaultOptions, region, SimulatedRegion } from "./simulated-region.ts";

const createRouteController = await kinds.route.loadController();
const never = new AbortController().signal;
const ref = { namespace: "acme", name: "web" };
const nextRef = { namespace: "acme", name: "web-next" };
const policyRef = { namespace: "acme", name: "allow-route-ingress-web" };
const gateway = { namespace: "gateway", name: "public", proxies: { namespace: "proxies" } };
const workspace = applyRoute().workspaceId;

const first = { deploymentId: "app_web-1", port: 8080 };
const second = { deploymentId: "app_web-2", port: 9090 };
const exposed = (
  target: typeof first,
  ...backends: { deploymentId: string; port: number; percent?: number }[]
) =>
  applyRoute({
    deploymentId: target.deploymentId,
    backends,
    expose: Expose.GATEWAY,
    hostnames: ["shop.example.com"],
  });

interface HttpRouteSpec {
  readonly parentRefs: readonly unknown[];
  readonly hostnames: readonly string[];
  readonly rules: readonly { readonly backendRefs: readonly { name: string; weight: number }[] }[];
}

async function startGateway(
  world: SimulatedRegion,
  overrides: Partial<typeof defaultOptions> & { readonly gateway?: typeof gateway } = { gateway },
) {
  await world.plane.admin.grantHostname("shop.example.com", workspace);
  const options = { ...defaultOptions, ...overrides };
  const agent = world.createAgentOf("routes", (deps) => createRouteController(options, deps));
  await world.resolved(agent.controller.start());
  const install = () => world.api.create(customResourceDefinitions, httpRouteDefinition, {}, never);
  const route = () => world.api.get(httpRoutes, ref, {}, never);
  const spec = async () => (await route())?.spec as HttpRouteSpec | undefined;
  const weights = async () =>
    (await spec())?.rules[0]?.backendRefs.map(({ name, weight }) => `${name} ${weight}`).join();
  const leads = async (at: typeof ref) =>
    (await world.api.get(services, at, {}, never))?.spec?.selector?.[labelKeys.deploymentId];
  const report = () => world.plane.admin.routeReport(region, "rt_1");
  const status = () => agent.controller.objects().find(({ key }) => key === "acme/web");
  return { agent, install, route, spec, weights, leads, report, status };
}

test("the Gateway gets an HTTPRoute with the hostnames, and the policy admits its proxies only", async () => {
  const world = await SimulatedRegion.create();
  await world.api.create(customResourceDefinitions, httpRouteDefinition, {}, never);
  const { agent, spec, weights, report } = await startGateway(world);
  await world.plane.admin.setRoute(region, exposed(first, first));
  await world.until("requests go to the first release", async () => (await weights()) === "web 100");
  assert.deepEqual((await spec())?.hostnames, ["shop.example.com"]);
  assert.deepEqual((await spec())?.parentRefs, [
    { group: "gateway.networking.k8s.io", kind: "Gateway", namespace: "gateway", name: "public" },
  ]);
  const policy = JSON.stringify(await world.api.get(ciliumNetworkPolicies, policyRef, {}, never));
  assert.match(policy, /"fromEndpoints":\[{"matchLabels":{"io.kubernetes.pod.namespace":"proxies"}}\]/);
  await world.until(
    "it is reported",
    async () => (await report())?.gateway.hostnames[0] === "shop.example.com",
  );
  await world.clock.advance(130_000);
  const written = agent.writes.length;
  await world.clock.advance(600_000);
  assert.equal(agent.writes.length, written);
  await world.stop();
});

test("requests move in steps: a Service leads somewhere before the HTTPRoute names it, and goes after that", async () => {
  const world = await SimulatedRegion.create();
  await world.api.create(customResourceDefinitions, httpRouteDefinition, {}, never);
  const { agent, weights, leads, report } = await startGateway(world);
  await world.plane.admin.setRoute(region, exposed(first, first, second));
  await world.until("all go to the first", async () => (await weights()) === "web 100");
  const before = agent.writes.length;
  await world.plane.admin.setRoute(region, exposed(first, first, { ...second, percent: 10 }));
  await world.until("a tenth moves", async () => (await weights()) === "web 90,web-next 10");
  assert.equal(await leads(nextRef), second.deploymentId);
  assert.equal(await leads(ref), first.deploymentId);
  await world.until("that is reported", async () => (await report())?.gateway.nextPercent === 10);
  assert.equal((await report())?.gateway.nextDeploymentId, second.deploymentId);
  await world.plane.admin.setRoute(region, exposed(second, first, second));
  await world.until("all have moved", async () => (await weights()) === "web 100");
  await world.until("the second Service is gone", async () => (await leads(nextRef)) === undefined);
  assert.equal(await leads(ref), second.deploymentId);
  const order = agent.writes.slice(before).map(({ verb, kind, key }) => `${verb} ${kind} ${key}`);
  const at = (line: RegExp) => order.findIndex((each) => line.test(each));
  const lastAt = (line: RegExp) => order.findLastIndex((each) => line.test(each));
  assert.ok(at(/Service acme.web-next/) < at(/HTTPRoute/), order.join("\n"));
  assert.ok(lastAt(/HTTPRoute/) < lastAt(/delete Service acme.web-next/), order.join("\n"));
  await world.stop();
});

test("without the kind, everything else is in place, the reason is shown, and it is completed once the kind is there", async () => {
  const world = await SimulatedRegion.create();
  const { install, weights, leads, status, report } = await startGateway(world);
  await world.plane.admin.setRoute(region, exposed(first, first));
  await world.until("the Service is there", async () => (await leads(ref)) === first.deploymentId);
  await world.until("it says so", () => /^the cluster has no HTTPRoute/.test(status()?.failing ?? ""));
  assert.equal(status()?.appliedVersion, status()?.desiredVersion, "a release does not wait for it");
  await world.until("that is reported", async () =>
    /no HTTPRoute/.test((await report())?.gateway.gatewayProblem ?? ""),
  );
  await install();
  await world.until("requests go to it", async () => (await weights()) === "web 100");
  await world.until("it is well", () => status()?.failing === "");
  await world.stop();
});

test("without a Gateway in the configuration, the reason is shown and HTTPRoutes are left alone", async () => {
  const world = await SimulatedRegion.create();
  await world.api.create(customResourceDefinitions, httpRouteDefinition, {}, never);
  const { route, leads, status } = await startGateway(world, {});
  await world.plane.admin.setRoute(region, exposed(first, first));
  await world.until("the Service is there", async () => (await leads(ref)) === first.deploymentId);
  await world.until("it says so", () => /no Gateway is configured/.test(status()?.failing ?? ""));
  const policy = JSON.stringify(await world.api.get(ciliumNetworkPolicies, policyRef, {}, never));
  assert.doesNotMatch(policy, new RegExp(first.deploymentId), "it admits nobody");
  assert.equal(await route(), undefined);
  await world.stop();
});

test("without hostnames there is no HTTPRoute, which would get the requests for every name", async () => {
  const world = await SimulatedRegion.create();
  await world.api.create(customResourceDefinitions, httpRouteDefinition, {}, never);
  const { route, leads, status } = await startGateway(world);
  const bare = { deploymentId: first.deploymentId, backends: [first], expose: Expose.GATEWAY };
  await world.plane.admin.setRoute(region, applyRoute(bare));
  await world.until("the Service is there", async () => (await leads(ref)) === first.deploymentId);
  await world.clock.advance(130_000);
  assert.equal(await route(), undefined);
  assert.equal(status()?.outcome, Outcome.UNCHANGED);
  const policy = JSON.stringify(await world.api.get(ciliumNetworkPolicies, policyRef, {}, never));
  assert.match(policy, new RegExp(first.deploymentId), "the Gateway is admitted");
  await world.stop();
});

test("a route that leaves the Gateway loses its HTTPRoute, and a deleted one all of its objects", async () => {
  const world = await SimulatedRegion.create();
  await world.api.create(customResourceDefinitions, httpRouteDefinition, {}, never);
  const { route, leads, weights, report } = await startGateway(world);
  const moving = exposed(first, first, { ...second, percent: 50 });
  await world.plane.admin.setRoute(region, moving);
  await world.until("it moves", async () => (await weights()) === "web 50,web-next 50");
  await world.plane.admin.setRoute(
    region,
    applyRoute({ deploymentId: first.deploymentId, backends: [first], expose: Expose.CLUSTER }),
  );
  await world.until("both are gone", async () => !(await route()) && !(await leads(nextRef)));
  assert.equal(await leads(ref), first.deploymentId);
  await world.until("that is reported", async () => (await report())?.gateway.hostnames.length === 0);
  await world.plane.admin.setRoute(region, moving);
  await world.until("it moves again", async () => (await weights()) === "web 50,web-next 50");
  await world.plane.admin.deleteRoute(region, "rt_1");
  await world.until("everything is gone", async () => {
    const left = [await route(), await leads(ref), await leads(nextRef)];
    return left.every((each) => each === undefined);
  });
  await world.until("that is reported too", async () => (await report())?.exists === false);
  await world.stop();
});

test("what somebody changes or adds on the HTTPRoute is put back, and one that is not krane's stays", async () => {
  const world = await SimulatedRegion.create();
  await world.api.create(customResourceDefinitions, httpRouteDefinition, {}, never);
  const { spec, weights, status } = await startGateway(world);
  await world.plane.admin.setRoute(region, exposed(first, first));
  await world.until("it is there", async () => (await weights()) === "web 100");
  const by = { fieldManager: "meddler", force: true };
  const theirs = { hostnames: ["bank.example.com"], useDefaultGateways: "All" };
  await world.api.apply(httpRoutes, { metadata: ref, spec: theirs }, by, never);
  await world.until("it is put back", async () => {
    const live = await spec();
    return live?.hostnames.join() === "shop.example.com" && !("useDefaultGateways" in live);
  });
  await world.stop();

  const other = await SimulatedRegion.create();
  await other.api.create(customResourceDefinitions, httpRouteDefinition, {}, never);
  await other.api.apply(namespaces, { metadata: { name: "acme" } }, by, never);
  await other.clock.advance(5_000);
  await other.api.apply(httpRoutes, { metadata: ref, spec: theirs }, by, never);
  const stranger = await startGateway(other);
  await other.plane.admin.setRoute(region, exposed(first, first));
  await other.until("it is a conflict", () => stranger.status()?.outcome === Outcome.CONFLICT);
  assert.deepEqual((await stranger.spec())?.hostnames, ["bank.example.com"]);
  assert.equal(status()?.outcome, Outcome.UNCHANGED);
  await other.stop();
});
