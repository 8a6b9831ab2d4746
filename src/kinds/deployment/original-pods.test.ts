import assert from "node:assert/strict";
import { test } from "node:test";
import type { PodSpec } from "kubernetes-types/core/v1.js";
import { specOf } from "../../../test/support/deployment-messages.ts";
import { messageOfOlderAgent, replicaSetOfOlderAgent } from "../../../test/support/older-agent.ts";
import { essenceOf, isSameEssence } from "./original-pods.ts";
import { desiredReplicaSet } from "./pod-template.ts";

const original = replicaSetOfOlderAgent("acme").spec?.template?.spec ?? assert.fail("no template");

/** krane's own template for the same deployment. */
function own(overrides: Parameters<typeof messageOfOlderAgent>[0] = {}): PodSpec | undefined {
  const spec = specOf(messageOfOlderAgent(overrides));
  return desiredReplicaSet(spec, { secrets: { audience: "krane" } }).spec?.template?.spec;
}

const isCurrent = (pod: PodSpec, template: PodSpec | undefined) =>
  isSameEssence(essenceOf(pod), essenceOf(template));

function changed(fields: object): PodSpec {
  const [container] = original.containers;
  return { ...original, containers: [{ ...container, name: "deployment", ...fields }] };
}

test("a pod of the original is current under krane's template for the same deployment", () => {
  assert.equal(isCurrent(original, own()), true);
  const mounted = { name: "kube-api-access-x", projected: { sources: [] } };
  assert.equal(isCurrent({ ...original, nodeName: "n", volumes: [mounted] }, own()), true);
});

test("a real change makes it one of an older template", () => {
  const changes: Parameters<typeof messageOfOlderAgent>[0][] = [
    { image: "registry.example/acme/web:2" },
    { port: 8081 },
    { cpuMillicores: 500n },
    { memoryMib: 512n },
    { command: ["./other"] },
    { shutdownSignal: "SIGQUIT" },
    { healthcheck: new TextEncoder().encode('{"method":"GET","path":"/other"}') },
    { encryptedEnvironmentVariables: new TextEncoder().encode('{"secrets":{"A":"b"}}') },
    { environmentId: "env_other" },
  ];
  for (const change of changes)
    assert.equal(isCurrent(original, own(change)), false, JSON.stringify(Object.keys(change ?? {})));
});

test("a command is compared behind the injector that the platform's webhook puts in front", () => {
  const initContainers = [{ name: "copy-inject" }];
  const wrapped = (...command: string[]): PodSpec => ({ ...changed({ command }), initContainers });
  assert.equal(isCurrent(wrapped("/unkey/inject", "--", "./server"), own()), true);
  assert.equal(isCurrent(wrapped("/unkey/inject", "--", "./other"), own()), false);
  assert.equal(isCurrent(changed({ command: ["/unkey/inject", "--", "./server"] }), own()), false);
});
