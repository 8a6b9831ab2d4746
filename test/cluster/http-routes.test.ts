// HTTPRoutes meet a real API server and the definition that the Gateway API publishes: what krane writes is accepted to the last
// field, and the server adds nothing to it.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, type TestContext, test } from "node:test";
import { parseAllDocuments } from "yaml";
import type { KubeObject } from "../../src/kube/types.ts";
import { helm, resolveGoTool } from "../../tools/go-tool.ts";
import { renderChart } from "../../tools/helm-chart.ts";
import { loadHttpRouteDefinition } from "../support/cluster/published-definitions.ts";
import { clusterUnderTest } from "../support/cluster-under-test.ts";
import { installRights } from "../support/deployed-rights.ts";
import { eventually } from "../support/eventually.ts";
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

  const values = ["--set", "agent.gateway.namespace=gateway,agent.gateway.name=public"];
  const rendered = parseAllDocuments(await renderChart(binary.path, values, never)).map((each) =>
    each.toJS(),
  );
  const items = rendered.filter((each) => each?.kind?.startsWith("ValidatingAdmissionPolicy"));
  const input = JSON.stringify({ apiVersion: "v1", kind: "List", items });
  await cluster.kubectl(["apply", "--server-side", "--force-conflicts", "-f", "-"], { input });
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
