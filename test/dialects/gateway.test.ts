// An agent or a control plane that has routes but knows of no Gateway, beside one of this version: nothing is opened that was
// not open, what cannot be done is said, and everything else works.
import assert from "node:assert/strict";
import { test } from "node:test";
import { clone } from "@bufbuild/protobuf";
import type { Interceptor } from "@connectrpc/connect";
import {
  ApplyRoute_Expose as Expose,
  type RouteState,
  RouteStateSchema,
} from "../../src/gen/ctrl/v1/route_pb.ts";
import { Release_Phase as Phase } from "../../src/gen/krane/admin/v1/app_pb.ts";
import {
  ciliumNetworkPolicies,
  customResourceDefinitions,
  httpRoutes,
  replicaSets,
  services,
} from "../../src/kube/resources.ts";
import { labelKeys } from "../../src/model/labels.ts";
import { advanceReleases } from "../../src/server/apps/release-steps.ts";
import { createWhyWorld, type WhyWorld } from "../integration/why/why-world.ts";
import { applyDeployment } from "../support/deployment-messages.ts";
import { eventually } from "../support/eventually.ts";
import { httpRouteDefinition } from "../support/http-route-definition.ts";
import { applyRoute } from "../support/route-messages.ts";

const never = new AbortController().signal;
const gateway = '[gateway]\nnamespace = "gateway"\nname = "public"';
const owner = { workspaceId: "ws_1", projectId: "proj_1" };
const ref = { namespace: "acme", name: "web" };
const hostname = "shop.example.com";
const exposed = { expose: Expose.GATEWAY, hostnames: [hostname] };

/** Grants the hostname; the result applies an app with an image. */
async function applyApps({ region, admin, client }: WhyWorld) {
  await admin.grantHostname(hostname, owner.workspaceId);
  const people = client();
  await people.applyEnvironment({ region, id: "env_1", ...owner });
  return (image: string, reachable: { expose: Expose; hostnames?: string[] }) => {
    const names = { deploymentId: "app_web", k8sName: "web", k8sNamespace: "acme", environmentId: "env_1" };
    const template = { ...applyDeployment({ ...names, ...owner, image, replicas: 1 }) };
    const policy = { readySeconds: 0, drainSeconds: 0 };
    return people.applyApp({ region, spec: { template, policy, ...reachable } });
  };
}

/** The message as an agent reads it that has no name for the value, and not the fields. */
function withoutGateway(state: RouteState): RouteState {
  const read = clone(RouteStateSchema, state);
  if (read.state.case !== "apply") return read;
  const { value } = read.state;
  if (value.expose === Expose.GATEWAY) value.expose = 4 as Expose;
  value.hostnames = [];
  for (const backend of value.backends) backend.percent = 0;
  return read;
}

async function* each(states: AsyncIterable<RouteState>): AsyncIterable<RouteState> {
  for await (const state of states) yield withoutGateway(state);
}

/** While `isOlder()`, agents read routes as one does that is older than the Gateway. */
const readByOlder =
  (isOlder: () => boolean): Interceptor =>
  (next) =>
  async (request) => {
    const response = await next(request);
    if (!isOlder() || response.method.output.typeName !== RouteStateSchema.typeName) return response;
    return response.stream
      ? { ...response, message: each(response.message as AsyncIterable<RouteState>) }
      : { ...response, message: withoutGateway(response.message as RouteState) };
  };

test("an agent that knows routes but no Gateway keeps what it applied, is called too old, and rolls apps over", async (t) => {
  let isOlder = true;
  const world = await createWhyWorld(t, { interceptors: [readByOlder(() => isOlder)] });
  const { region, store, becauseOf } = world;
  const { api } = world.cluster;
  await api.create(customResourceDefinitions, httpRouteDefinition, {}, never);
  const apply = await applyApps(world);
  const leadsTo = async () =>
    (await api.get(services, ref, {}, never))?.spec?.selector?.[labelKeys.deploymentId];
  const phases = async () => {
    await advanceReleases(store, Date.now(), never);
    return (await store.app(region, "app_web")).app?.releases.map(({ phase }) => phase);
  };
  const policy = async () => {
    const name = "allow-route-ingress-web";
    return JSON.stringify((await api.get(ciliumNetworkPolicies, { ...ref, name }, {}, never))?.["spec"]);
  };

  const older = await world.startAgent();
  await apply("registry.example/web:1", { expose: Expose.ENVIRONMENT });
  await eventually("the first release has the traffic", async () => {
    assert.deepEqual([await phases(), await leadsTo()], [[Phase.CURRENT], "app_web-1"]);
  });
  const before = await policy();
  await apply("registry.example/web:1", exposed);
  const { summary, reason, remedy } = await becauseOf("agent-too-old", "app/web");
  assert.match(
    summary,
    /The agent of region local\.dev is too old for a value in the spec; the last good version stays/,
  );
  assert.match(reason, /^expose is \d+, which this version of krane does not know$/);
  assert.match(remedy, /^Upgrade the agent/);
  assert.equal(await policy(), before);

  await apply("registry.example/web:2", exposed);
  await eventually("the next release is current", async () =>
    assert.deepEqual(await phases(), [Phase.DRAINING, Phase.CURRENT]),
  );
  await becauseOf("agent-too-old", "app/web");
  assert.equal(await leadsTo(), "app_web-1");
  assert.equal(await policy(), before, "nothing more is opened");
  assert.deepEqual((await api.list(httpRoutes, {}, never)).items, []);
  const sets = (await api.list(replicaSets, { namespace: "acme" }, never)).items;
  assert.equal(sets.length, 2, "what has the traffic runs on");

  await older.stop();
  isOlder = false;
  await world.startAgent(gateway);
  await eventually("an agent of this version completes it", async () => {
    assert.equal(await leadsTo(), "app_web-2");
    const route = await api.get(httpRoutes, ref, {}, never);
    assert.match(JSON.stringify(route), new RegExp(`"hostnames":\\["${hostname}"\\]`));
  });
});

test("an agent with a Gateway serves the routes of a control plane that knows no hostnames, and writes no HTTPRoute", async (t) => {
  const world = await createWhyWorld(t, { interceptors: [readByOlder(() => true)] });
  const { api } = world.cluster;
  await api.create(customResourceDefinitions, httpRouteDefinition, {}, never);
  await world.startAgent(gateway);
  await world.admin.setRoute(world.region, applyRoute({ expose: Expose.CLUSTER }));
  await world.becauseOf("all-well", "route/rt_1");
  assert.ok(await api.get(services, ref, {}, never));
  assert.deepEqual((await api.list(httpRoutes, {}, never)).items, []);
});

test("a route that an older server wrote without its hostnames loses its HTTPRoute until the app changes", async (t) => {
  const world = await createWhyWorld(t);
  const { region, store } = world;
  const { api } = world.cluster;
  await api.create(customResourceDefinitions, httpRouteDefinition, {}, never);
  const apply = await applyApps(world);
  await world.startAgent(gateway);
  await apply("registry.example/web:1", exposed);
  const hostnames = async () => {
    await advanceReleases(store, Date.now(), never);
    const route = await api.get(httpRoutes, ref, {}, never);
    return (route?.["spec"] as { readonly hostnames: readonly string[] } | undefined)?.hostnames;
  };
  await eventually("it is served, and no step is due any more", async () => {
    assert.deepEqual(await hostnames(), [hostname]);
    assert.deepEqual(await store.activeApps(), []);
  });

  const { row } = (await store.app(region, "app_web")).route ?? assert.fail("no route");
  const spec = { ...row.spec, hostnames: [] };
  const older = () => ({ spec, desired: "running", appId: "app_web" }) as const;
  await store.change(region, "route", row.id, older, { by: "older", atMs: Date.now() });
  await eventually("it is not served", async () => assert.equal(await hostnames(), undefined));
  await apply("registry.example/web:2", exposed);
  await eventually("it is served again", async () => assert.deepEqual(await hostnames(), [hostname]));
});
