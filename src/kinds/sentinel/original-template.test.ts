import assert from "node:assert/strict";
import { test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { deploymentOfOlderAgent } from "../../../test/support/older-sentinel.ts";
import { sentinelSpec as spec } from "../../../test/support/sentinel-messages.ts";
import { desiredSentinelDeployment } from "./desired.ts";
import { keptTemplate, originalTemplateOf } from "./original-template.ts";
import { desiredSentinelTemplate, sentinelConfiguration } from "./pod-template.ts";

const settings = { region: "local.dev" };
/** As the original indents it. */
const configuration = sentinelConfiguration(spec(), settings.region).replaceAll(/^/gm, "\t");
const live = () => originalTemplateOf(deploymentOfOlderAgent(configuration)) ?? assert.fail("not found");

test("the template of the original is kept, field by field", () => {
  const kept = keptTemplate(spec(), settings, live());
  const { spec: left } = deploymentOfOlderAgent(configuration);
  const [port, ...ports] = left?.template.spec?.containers[0]?.ports ?? [];
  const container = {
    ...left?.template.spec?.containers[0],
    resources: {},
    ports: [{ ...port, protocol: "TCP" }, ...ports],
  };
  assert.deepEqual(kept?.template, {
    ...left?.template,
    spec: { ...left?.template.spec, containers: [container] },
  });
});

test("krane's own differs only in what docs/operations/from-the-original.md lists", () => {
  const own = desiredSentinelTemplate(spec(), { ...settings, registryHost: "registry.example" });
  const differing = differences(deploymentOfOlderAgent(configuration).spec?.template, own, "");
  assert.deepEqual(differing, [
    "metadata.labels.app.kubernetes.io/managed-by",
    "spec.automountServiceAccountToken",
    "spec.containers.0.env.0.value",
    // The API server fills it in.
    "spec.containers.0.ports.0.protocol",
    "spec.containers.0.resources",
    "spec.enableServiceLinks",
    "spec.imagePullSecrets",
  ]);
});

/** The paths at which two values differ. */
function differences(one: unknown, other: unknown, path: string): readonly string[] {
  if (isDeepStrictEqual(one, other)) return [];
  const isInner = (value: unknown): value is object => typeof value === "object" && value !== null;
  if (!isInner(one) || !isInner(other)) return [path];
  const [a, b] = [one as Record<string, unknown>, other as Record<string, unknown>];
  const names = [...new Set([...Object.keys(a), ...Object.keys(b)])].sort();
  return names.flatMap((name) => differences(a[name], b[name], path === "" ? name : `${path}.${name}`));
}

test("it is kept until krane's own template changes, whatever the field", () => {
  const kept = keptTemplate(spec(), settings, live()) ?? assert.fail("not kept");
  const taken = originalTemplateOf(desiredSentinelDeployment(spec(), settings, kept.template), kept.hash);
  assert.notEqual(keptTemplate(spec({ replicas: 5 }), settings, taken), undefined);
  for (const change of [
    { image: "registry.example/platform/sentinel:2" },
    { cpuMillicores: 999n },
    { memoryMib: 999n },
  ])
    assert.equal(keptTemplate(spec(change), settings, taken), undefined, Object.keys(change)[0]);
  assert.equal(keptTemplate(spec(), { region: "us-east-1.aws" }, taken), undefined);
});

test("a template with another image or configuration is not kept, and krane's own is not the original's", () => {
  assert.equal(keptTemplate(spec(), settings, { ...live(), image: "registry.example/other:1" }), undefined);
  assert.equal(
    keptTemplate(spec(), settings, { ...live(), configuration: 'sentinel_id = "x"\n' }),
    undefined,
  );
  assert.equal(originalTemplateOf(desiredSentinelDeployment(spec(), settings)), undefined);
});
