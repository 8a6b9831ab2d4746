// HTTPRoutes meet a real API server and the definition that the Gateway API publishes: what krane writes is accepted to the last
// field, and the server adds nothing to it. The agent keeps one with the rights of the chart.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, type TestContext, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { parse, parseAllDocuments } from "yaml";
import { findSeal } from "../../src/engine/seal-keys.ts";
import { ApplyRoute_Expose as Expose } from "../../src/gen/ctrl/v1/route_pb.ts";
import { AppSpecSchema } from "../../src/gen/krane/admin/v1/app_pb.ts";
import { createKubeApi } from "../../src/kube/client.ts";
import { httpRoutes } from "../../src/kube/resources.ts";
import { knownFieldNames } from "../../src/kube/spec-field-names.ts";
import type { KubeObject } from "../../src/kube/types.ts";
import { withManifestHash } from "../../src/model/manifest-hash.ts";
import { advanceReleases } from "../../src/server/apps/release-steps.ts";
import { withSpec } from "../../src/server/apps/releases.ts";
import { helm, resolveGoTool } from "../../tools/go-tool.ts";
import { renderChart } from "../../tools/helm-chart.ts";
import { agentToken } from "../integration/agent/agent-world.ts";
import { dev as region, serveControlPlane, token } from "../integration/server/served-control-plane.ts";
import { startAgentProcess } from "../support/agent-process.ts";
import { realServerTarget } from "../support/cluster/contract-target.ts";
import { loadHttpRouteDefinition } from "../support/cluster/published-definitions.ts";
import { clusterUnderTest } from "../support/cluster-under-test.ts";
import { installRights } from "../support/deployed-rights.ts";
import { applyDeployment } from "../support/deployment-messages.ts";
import { checkAdditions, checkEdits, DriftTrial } from "../support/drift-trial.ts";
import { eventually } from "../support/eventually.ts";
import { buildKrane } from "../support/krane-process.ts";
import { assertKeptAsSent, createManifestApplier, pathOf, writeOf } from "../support/manifest-applier.ts";

const cluster = clusterUnderTest();
const { apply, applied } = createManifestApplier(cluster);
const never = new AbortController().signal;
const definition = await loadHttpRouteDefinition();
const crd = "crd/httproutes.gateway.networking.k8s.io";

before(async () => {
  await cluster.empty();
  if (!("text" in definition)) return;
  await cluster.kubectl(["apply", "--server-side", "-f", "-"], { input: definition.text });
  // kubectl fails on a definition that has no conditions yet.
  await eventually("the kind is served", () =>
    cluster.kubectl(["wait", "--for=condition=Established", "--timeout=60s", crd]),
  );
});
after(() => cluster.kubectl(["delete", crd, "--ignore-not-found"]));

/** Replaces the admission policy by the one of a chart with `[gateway]`. */
async function admitGateway(helmPath: string): Promise<void> {
  const values = ["--set", "agent.gateway.namespace=gateway,agent.gateway.name=public"];
  const rendered = parseAllDocuments(await renderChart(helmPath, values, never)).map((each) => each.toJS());
  const items = rendered.filter((each) => each?.kind?.startsWith("ValidatingAdmissionPolicy"));
  const input = JSON.stringify({ apiVersion: "v1", kind: "List", items });
  await cluster.kubectl(["apply", "--server-side", "--force-conflicts", "-f", "-"], { input });
}

interface HttpRoute extends KubeObject {
  readonly spec: { readonly hostnames: readonly string[]; readonly rules: readonly object[] };
}

async function routeOf(t: TestContext, name: string): Promise<HttpRoute> {
  const namespace = await cluster.freshNamespace(t);
  const manifests: readonly KubeObject[] = JSON.parse(
    readFileSync(new URL(`../../testdata/route/${name}/manifests.json`, import.meta.url), "utf8"),
  );
  const route = manifests.find(({ kind }) => kind === "HTTPRoute") ?? assert.fail("no HTTPRoute");
  return { ...route, metadata: { ...route.metadata, namespace } } as HttpRoute;
}

for (const name of ["gateway", "gateway-moving"])
  test(`the HTTPRoute of ${name} is accepted, and the server adds nothing to it`, async (t) => {
    if (!("text" in definition)) return t.skip(definition.missing);
    const manifest = await routeOf(t, name);
    const live = await applied(manifest);
    assert.equal(writeOf(await applied(manifest)), writeOf(live), "applied twice, written once");
    assertKeptAsSent(live, manifest);
    assert.deepEqual(live.spec, manifest.spec);
  });

async function trialOf(t: TestContext): Promise<DriftTrial> {
  const { transport, close } = realServerTarget(cluster);
  t.after(close);
  const manifest = withManifestHash(await routeOf(t, "gateway-moving"));
  return new DriftTrial(httpRoutes, manifest, { krane: transport, others: transport }, t.signal);
}

test("every field of an HTTPRoute that krane sends is restored", async (t) => {
  if (!("text" in definition)) return t.skip(definition.missing);
  const accepted = await checkEdits(await trialOf(t));
  assert.ok(accepted >= 5, `only ${accepted} edits were accepted`);
});

const match = { path: { type: "PathPrefix", value: "/" } };
const backend = { group: "", kind: "Service", name: "thief", port: 80, weight: 1 };
const mirror = { type: "RequestMirror", requestMirror: { backendRef: { name: "thief", port: 80 } } };
const rewrite = { type: "URLRewrite", urlRewrite: { hostname: "a.example.com" } };
const ruleWith = (more: object) => ({
  spec: { rules: [{ matches: [match], backendRefs: [backend], ...more }] },
});

test("every field of an HTTPRoute that krane does not send is removed", async (t) => {
  if (!("text" in definition)) return t.skip(definition.missing);
  const parts = [
    ruleWith({ filters: [mirror] }),
    ruleWith({ filters: [rewrite] }),
    ruleWith({ timeouts: { request: "1s" } }),
    ruleWith({ backendRefs: [{ ...backend, namespace: "other" }] }),
    ruleWith({ matches: [{ ...match, method: "GET", headers: [{ name: "a", value: "b" }] }] }),
    { spec: { hostnames: ["shop.example.com", "other.example.com"] } },
    { spec: { parentRefs: [{ name: "other", namespace: "gateway" }] } },
  ];
  const accepted = await checkAdditions(await trialOf(t), parts);
  assert.ok(accepted >= parts.length / 2, `only ${accepted} edits were accepted`);
});

test("a mirror of all requests is removed, also if its field manager was removed from the object", async (t) => {
  if (!("text" in definition)) return t.skip(definition.missing);
  const trial = await trialOf(t);
  await trial.reconcile();
  const filters = { op: "add", path: "/spec/rules/0/filters", value: [mirror] };
  assert.ok(await trial.write("PATCH", "application/json-patch+json", [filters], "someone"));
  const { managedFields = [] } = (await trial.live()).metadata ?? {};
  const index = managedFields.findIndex(({ manager }) => manager === "someone");
  const forget = { op: "remove", path: `/metadata/managedFields/${index}` };
  assert.ok(await trial.write("PATCH", "application/json-patch+json", [forget], "someone"));
  await trial.reconcile();
  assert.deepEqual(((await trial.live()) as HttpRoute).spec, (trial.manifest as HttpRoute).spec);
});

test("krane knows the name of every field of an HTTPRoute", () => {
  if (!("text" in definition)) return;
  const schema = parse(definition.text).spec.versions.find(
    ({ name }: { name: string }) => name === "v1",
  ).schema;
  const names = namesIn(schema.openAPIV3Schema.properties.spec);
  assert.ok(names.length > 40);
  assert.deepEqual(
    names.filter((name) => !knownFieldNames.has(name)),
    [],
  );
});

interface Schema {
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
}

function namesIn({ items, properties = {} }: Schema): readonly string[] {
  const below = Object.entries(properties).flatMap(([name, schema]) => [name, ...namesIn(schema)]);
  return items === undefined ? below : [...below, ...namesIn(items)];
}

test("what would be wrong for a Gateway is refused", async (t) => {
  if (!("text" in definition)) return t.skip(definition.missing);
  const route = await routeOf(t, "gateway");
  const refused = [
    { ...route.spec, hostnames: ["Shop.example.com"] },
    { ...route.spec, hostnames: Array.from({ length: 17 }, (_, index) => `a${index}.example.com`) },
    { ...route.spec, unknown: true },
  ];
  for (const spec of refused) {
    const { status } = await apply({ ...route, spec } as KubeObject);
    assert.ok(status >= 400, JSON.stringify(spec).slice(0, 200));
  }
});

test("the chart's admission policy accepts what krane writes for its Gateway, and nothing else", async (t) => {
  if (!("text" in definition)) return t.skip(definition.missing);
  const binary = await resolveGoTool(helm, process.env, { report: () => undefined }, never);
  if (binary.kind === "missing") return t.skip(binary.what);
  const account = await installRights(cluster, ["agent", "gateway"]);
  t.after(() => account.remove());
  const { spec, ...route } = await routeOf(t, "gateway-moving");
  const ofAgent = async (changed: object) => {
    const path = `${pathOf(route)}?fieldManager=krane&dryRun=All`;
    const contentType = "application/apply-patch+yaml";
    const { token } = account;
    const body = { ...route, spec: { ...spec, ...changed } };
    return (await cluster.request({ method: "PATCH", path, contentType, body, token })).status;
  };
  assert.equal(await ofAgent({}), 422, "the plain manifests have no Gateway");

  await admitGateway(binary.path);
  await eventually("it is accepted", async () => assert.equal(await ofAgent({}), 201));
  const [rule] = spec.rules;
  const ref = { name: "web", port: 80 };
  for (const changed of [
    { parentRefs: [{ namespace: "gateway", name: "other" }] },
    { parentRefs: [{ namespace: "other", name: "public" }] },
    { hostnames: [] },
    { rules: [{ ...rule, backendRefs: [{ ...ref, namespace: "other" }] }] },
    { rules: [{ ...rule, filters: [{ type: "URLRewrite", urlRewrite: { hostname: "a.example" } }] }] },
  ])
    assert.equal(await ofAgent(changed), 422, JSON.stringify(changed));
});

test("an agent with the chart's rights writes the HTTPRoute of an app, repairs it, and deletes it with the app", async (t) => {
  if (!("text" in definition)) return t.skip(definition.missing);
  const binary = await resolveGoTool(helm, process.env, { report: () => undefined }, never);
  if (binary.kind === "missing") return t.skip(binary.what);
  const account = await installRights(cluster, ["agent", "gateway"]);
  t.after(() => account.remove());
  await admitGateway(binary.path);
  const krane = await buildKrane();
  t.after(() => krane.remove());
  const { store, admin, running } = await serveControlPlane(t, "h2c");
  const workspaceId = "ws_1";
  const [name, other] = ["shop.example.com", "www.example.com"];
  await admin.grantHostname("*.example.com", workspaceId);
  const { kubeconfigPath } = account;
  const controlPlane = { url: running?.url ?? assert.fail("it is not served"), token };
  const more = '[gateway]\nnamespace = "gateway"\nname = "public"';
  const place = { program: krane.program, region, controlPlane, kubeconfigPath, agentToken, more };
  await startAgentProcess(t, place);

  const id = "app_web";
  const author = { by: "test", atMs: Date.now() };
  const apply = (...hostnames: readonly string[]) => {
    const names = { deploymentId: id, k8sName: "web", k8sNamespace: "acme", workspaceId };
    const template = applyDeployment({ ...names, replicas: 1 });
    const policy = { readySeconds: 0, drainSeconds: 0 };
    const spec = create(AppSpecSchema, {
      template,
      policy,
      expose: Expose.GATEWAY,
      hostnames: [...hostnames],
    });
    const origin = { ...author, cause: "applied", secrets: new Uint8Array() };
    return store.changeApp(region, id, ({ app }) => withSpec(app, spec, origin), author);
  };
  const kubectl = (...args: readonly string[]) => cluster.kubectl(["-n", "acme", ...args]);
  const live = async (): Promise<HttpRoute> =>
    JSON.parse(await kubectl("get", "httproute", "web", "-o", "json"));
  const untilServed = (what: string, hostname: string, without = "") =>
    eventually(
      what,
      async () => {
        await advanceReleases(store, Date.now(), never);
        const { metadata, spec } = await live();
        assert.deepEqual(spec.hostnames, [hostname]);
        assert.match(JSON.stringify(spec.rules), /"name":"web","port":80,"weight":100/);
        assert.notEqual(metadata?.uid, without);
        const { row, report } = (await store.app(region, id)).route ?? {};
        assert.deepEqual([row?.spec.deploymentId, report?.gateway.hostnames], [`${id}-1`, [hostname]]);
      },
      { deadlineMs: 60_000 },
    );
  await apply(name);
  await untilServed("it is written", name);
  const written = await live();
  const { transport, close } = realServerTarget(cluster);
  t.after(close);
  const seal = await findSeal({ region, namespace: "krane" }, createKubeApi(transport), never);
  assert.equal(seal?.read(httpRoutes, written.metadata).kind, "valid");
  assert.match(JSON.stringify(written.spec), /"namespace":"gateway"/);

  const edit = { spec: { hostnames: ["evil.example.com"], parentRefs: [{ name: "evil" }] } };
  await kubectl("patch", "httproute", "web", "--type=merge", "-p", JSON.stringify(edit));
  await untilServed("an edit is undone", name);
  assert.deepEqual((await live()).spec, written.spec);
  await kubectl("delete", "httproute", "web");
  await untilServed("it is written again", name, written.metadata?.uid);
  await apply(other);
  await untilServed("it has another name", other);

  await store.changeApp(region, id, () => "removed", author);
  await eventually("nothing of the route is left, and its name is free", async () => {
    const kinds = "httproutes,services,ciliumnetworkpolicies";
    assert.equal(await kubectl("get", kinds, "-l", "app.kubernetes.io/component=route", "-o", "name"), "");
    await store.hostnames.revoke("*.example.com");
  });
});
