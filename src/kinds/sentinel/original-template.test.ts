import assert from "node:assert/strict";
import { test } from "node:test";
import { deploymentOfOlderAgent } from "../../../test/support/older-sentinel.ts";
import { sentinelSpec as spec } from "../../../test/support/sentinel-messages.ts";
import { desiredSentinelDeployment } from "./desired.ts";
import { keptTemplate, originalTemplateOf } from "./original-template.ts";
import { sentinelConfiguration } from "./pod-template.ts";

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
