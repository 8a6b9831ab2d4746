import assert from "node:assert/strict";
import { test } from "node:test";
import { admits } from "../../../test/support/cilium-evaluator.ts";
import { deploymentSpec } from "../../../test/support/deployment-messages.ts";
import { desiredIngressPolicy } from "./ingress-policy.ts";
import { deploymentLabels } from "./pod-template.ts";

const spec = deploymentSpec({ port: 3000 });
const to = { namespace: spec.namespace, labels: deploymentLabels(spec) };

function letsIn(namespace: string, port: number, scraperNamespace?: string): boolean {
  const policy = desiredIngressPolicy(spec, [spec.port], scraperNamespace);
  return admits([policy], { from: { namespace, labels: { app: "krane" } }, to, port, protocol: "TCP" });
}

test("krane's own namespace is let in where krane fetches documents, on the same ports and nobody else", () => {
  assert.equal(letsIn("platform", 3000, "platform"), true);
  assert.equal(letsIn("platform", 3001, "platform"), false);
  assert.equal(letsIn("elsewhere", 3000, "platform"), false);
  assert.equal(letsIn(spec.namespace, 3000, "platform"), false);
});

test("it is not let in otherwise", () => {
  assert.equal(letsIn("platform", 3000), false);
});
