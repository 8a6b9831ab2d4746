import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { applyRoute, routeSpec } from "../../../test/support/route-messages.ts";
import { ApplyRoute_Expose as Expose } from "../../gen/ctrl/v1/route_pb.ts";
import { desiredHttpRoute } from "./http-route.ts";
import { parseApplyRoute } from "./spec.ts";

type Overrides = Parameters<typeof applyRoute>[0];

const atGateway = { expose: Expose.GATEWAY, hostnames: ["shop.example.com"] };
const [target, next] = [
  { deploymentId: "d_1a2B3c4D", port: 8080 },
  { deploymentId: "d_2", port: 9090 },
];

function pathsOf(overrides: Overrides): readonly string[] {
  const rules = { gatewayNamespaces: ["gateway", "proxies"] };
  const parsed = parseApplyRoute(applyRoute(overrides), rules);
  return parsed.kind === "invalid" ? parsed.problems.map(({ path }) => path) : [];
}

for (const [what, overrides, paths] of [
  ["hostnames at the Gateway", atGateway, []],
  ["no hostname at the Gateway", { expose: Expose.GATEWAY }, []],
  ["hostnames for the cluster", { ...atGateway, expose: Expose.CLUSTER }, ["hostnames"]],
  ["a wildcard", { ...atGateway, hostnames: ["a.example.com", "*.example.com"] }, ["hostnames[1]"]],
  ["a value of expose from later", { expose: 4 as Expose }, ["expose"]],
  ["a namespace of the Gateway", { k8sNamespace: "gateway" }, ["k8s_namespace"]],
  ["a namespace of its proxies", { k8sNamespace: "proxies" }, ["k8s_namespace"]],
  ["a part for the next one", { ...atGateway, backends: [target, { ...next, percent: 99 }] }, []],
  ["all of it", { ...atGateway, backends: [target, { ...next, percent: 100 }] }, ["backends[1].percent"]],
  ["a part for the target", { ...atGateway, backends: [{ ...target, percent: 1 }] }, ["backends[0].percent"]],
  ["a part without hostnames", { backends: [target, { ...next, percent: 9 }] }, ["backends[1].percent"]],
  [
    "a part beside nothing",
    { ...atGateway, deploymentId: "", backends: [{ ...next, percent: 9 }] },
    ["backends[0].percent"],
  ],
  [
    "two parts",
    {
      ...atGateway,
      backends: [target, { ...next, percent: 9 }, { deploymentId: "d_3", port: 80, percent: 9 }],
    },
    ["backends"],
  ],
  [
    "a name without room for a suffix",
    { ...atGateway, k8sName: "a".repeat(59), backends: [target, { ...next, percent: 9 }] },
    ["k8s_name"],
  ],
] as const satisfies readonly (readonly [string, Overrides, readonly string[]])[])
  test(`${what}: ${paths.length === 0 ? "accepted" : `rejected at ${paths.join()}`}`, () => {
    assert.deepEqual(pathsOf(overrides), paths);
  });

test("weights are not negative, add up to 100, and only of Services that are made", () => {
  const percent = fc.integer({ min: 0, max: 99 });
  fc.assert(
    fc.property(percent, (part) => {
      const spec = routeSpec({ ...atGateway, backends: [target, { ...next, percent: part }] });
      const gateway = { namespace: "gateway", name: "public", proxies: "cilium" } as const;
      const refs = desiredHttpRoute(spec, gateway).spec.rules.flatMap(({ backendRefs }) => backendRefs);
      assert.equal(
        refs.reduce((sum, { weight }) => sum + weight, 0),
        100,
      );
      for (const { weight } of refs) assert.ok(weight > 0);
      assert.deepEqual(
        refs.map(({ name }) => name),
        spec.next === undefined ? ["web"] : ["web", "web-next"],
      );
    }),
  );
});
