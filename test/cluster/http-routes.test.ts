// HTTPRoutes meet a real API server and the definition that the Gateway API publishes: what krane writes is accepted to the last
// field, and the server adds nothing to it.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, type TestContext, test } from "node:test";
import type { KubeObject } from "../../src/kube/types.ts";
import { loadHttpRouteDefinition } from "../support/cluster/published-definitions.ts";
import { clusterUnderTest } from "../support/cluster-under-test.ts";
import { eventually } from "../support/eventually.ts";
import { assertKeptAsSent, createManifestApplier, writeOf } from "../support/manifest-applier.ts";

const cluster = clusterUnderTest();
const { apply, applied } = createManifestApplier(cluster);
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
