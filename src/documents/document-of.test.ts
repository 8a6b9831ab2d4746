import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import fc from "fast-check";
import { ciphertextOf } from "../../test/support/ciphertext.ts";
import { ApplyCiliumNetworkPolicySchema } from "../gen/ctrl/v1/cilium_network_policy_pb.ts";
import { ApplyDeploymentSchema } from "../gen/ctrl/v1/deployment_pb.ts";
import { ApplySentinelSchema } from "../gen/ctrl/v1/sentinel_pb.ts";
import { type AnyContent, loadDocumentKinds } from "../kinds/documents.ts";
import { parsePolicyDocument } from "../kinds/policy/policy-document.ts";
import { collectProblems } from "../model/field-problem.ts";
import { documentOf, renderYaml } from "./document-of.ts";
import { parseDocuments } from "./parse.ts";
import { renderDocumentProblems } from "./problem.ts";

const kinds = await loadDocumentKinds();

const id = fc.stringMatching(/^[A-Za-z0-9]([A-Za-z0-9_.-]{0,20}[A-Za-z0-9])?$/);
const name = fc.stringMatching(/^[a-z]([a-z0-9-]{0,20}[a-z0-9])?$/);
const namespace = name.map((text) => `ns-${text}`);
const image = fc
  .tuple(name, fc.stringMatching(/^[A-Za-z0-9_]{1,10}$/))
  .map(([path, tag]) => `registry.example/${path}:${tag}`);
const pod = {
  image,
  replicas: fc.integer({ min: 0, max: 10_000 }),
  cpuMillicores: fc.bigInt({ min: 1n, max: 1_024_000n }),
  memoryMib: fc.bigInt({ min: 1n, max: 67_108_864n }),
};
const owner = { workspaceId: id, projectId: id, environmentId: id };
const seconds = fc.integer({ min: 1, max: 86_400 });

const healthcheck = fc.record(
  {
    method: fc.constantFrom("GET", "POST"),
    path: fc.stringMatching(/^\/[!-~]{0,20}$/),
    intervalSeconds: seconds,
    timeoutSeconds: seconds,
    failureThreshold: fc.integer({ min: 1, max: 1_000 }),
    initialDelaySeconds: seconds,
  },
  { requiredKeys: [] },
);

function json(value: unknown): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(JSON.stringify(value));
}

const argument = fc.string({ unit: "grapheme", minLength: 1 }).filter((text) => !text.includes("\0"));

const secrets = fc
  .uniqueArray(fc.stringMatching(/^[A-Z][A-Z0-9_]{3,12}_X$/), { minLength: 1, maxLength: 3 })
  .map((names) => json({ secrets: Object.fromEntries(names.map((each) => [each, ciphertextOf(each)])) }));

const deployment = fc
  .tuple(
    fc.record({ ...owner, ...pod, deploymentId: id, k8sName: name, k8sNamespace: namespace }),
    fc.record(
      {
        buildId: id,
        port: fc.integer({ min: 1, max: 65_535 }),
        command: fc.array(argument, { minLength: 1, maxLength: 4 }),
        shutdownSignal: fc.constantFrom("SIGTERM", "SIGINT", "SIGQUIT", "SIGKILL"),
        pullSecret: fc.constantFrom("krane-registry-acme", "krane-registry-a"),
        env: fc.dictionary(fc.stringMatching(/^[A-Za-z_][A-Za-z0-9_.-]{0,20}$/), argument, {
          minKeys: 1,
          maxKeys: 4,
          noNullPrototype: true,
        }),
        healthcheck: healthcheck.map(json),
        encryptedEnvironmentVariables: secrets,
      },
      { requiredKeys: [] },
    ),
  )
  .map(
    ([must, may]): AnyContent => ({
      kind: "deployment",
      spec: create(ApplyDeploymentSchema, { ...must, ...may }),
    }),
  );

const sentinel = fc
  .record({ ...owner, ...pod, sentinelId: id, k8sName: name })
  .map((init): AnyContent => ({ kind: "sentinel", spec: create(ApplySentinelSchema, init) }));

const rules = fc
  .dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 }), { maxKeys: 3 })
  .map((rule) =>
    json({
      apiVersion: "cilium.io/v2",
      kind: "CiliumNetworkPolicy",
      spec: { ...rule, endpointSelector: {} },
    }),
  )
  .filter((bytes) => collectProblems((refuse) => parsePolicyDocument(bytes, refuse)).kind === "valid");

const policy = fc
  .record({
    cilium: rules,
    k8sName: name,
    k8sNamespace: namespace,
    policyId: id,
    deploymentId: fc.option(id, { nil: "" }),
  })
  .map(
    ({ cilium, policyId, deploymentId, ...init }): AnyContent => ({
      kind: "policy",
      deploymentId,
      spec: create(ApplyCiliumNetworkPolicySchema, {
        ...init,
        ciliumNetworkPolicyId: policyId,
        policy: cilium,
      }),
    }),
  );

const environment = fc
  .record({ id, workspaceId: id, projectId: id })
  .map((spec): AnyContent => ({ kind: "environment", spec: { ...spec } }));

const region = fc.record({ region: fc.constant("local.dev") }, { requiredKeys: [] });

test("what is written from a message is read back as the same message", () => {
  const content = fc.oneof(deployment, sentinel, policy, environment);
  fc.assert(
    fc.property(content, region, (document, where) => {
      const text = renderYaml([documentOf({ ...document, ...where }, kinds)]);
      const parsed = parseDocuments([{ name: "a.yaml", text }], kinds);
      if (parsed.kind === "invalid") throw new Error(`${renderDocumentProblems(parsed.problems)}\n${text}`);
      assert.deepEqual(parsed.documents, [{ ...document, ...where, source: { file: "a.yaml", line: 1 } }]);
    }),
  );
});

test("the same is so in JSON", () => {
  fc.assert(
    fc.property(fc.oneof(deployment, policy), (document) => {
      // The only character that must be escaped: unescaped, it is taken for a sign that the file is not UTF-8.
      const text = JSON.stringify(documentOf(document, kinds), undefined, "\t").replaceAll(
        "\ufffd",
        "\\ufffd",
      );
      const parsed = parseDocuments([{ name: "a.json", text }], kinds);
      if (parsed.kind === "invalid") throw new Error(`${renderDocumentProblems(parsed.problems)}\n${text}`);
      assert.deepEqual(parsed.documents, [{ ...document, source: { file: "a.json", line: 1 } }]);
    }),
  );
});

test("what stands for bytes that are no text is written as an escape, and read back", () => {
  const spec = create(ApplyDeploymentSchema, {
    k8sNamespace: "ns-a",
    k8sName: "a",
    workspaceId: "w",
    projectId: "p",
    environmentId: "e",
    deploymentId: "d",
    image: "registry.example/a:1",
    cpuMillicores: 1n,
    memoryMib: 1n,
    command: ["\ufffd "],
  });
  const text = renderYaml([documentOf({ kind: "deployment", spec }, kinds)]);
  assert.doesNotMatch(text, /\ufffd/);
  const parsed = parseDocuments([{ name: "a.yaml", text }], kinds);
  assert.ok(parsed.kind === "valid");
  const [document] = parsed.documents;
  assert.ok(document?.kind === "deployment");
  assert.deepEqual(document.spec.command, ["\ufffd "]);
});

test("defaults are written out, and what is empty is left out", () => {
  const [document] = documentsOf(`apiVersion: krane/v1
kind: Deployment
id: d_1
name: web
namespace: demo
workspace: ws_1
project: p_1
environment: env_1
image: web:1
`);
  assert.deepEqual(document && documentOf(document, kinds), {
    apiVersion: "krane/v1",
    kind: "Deployment",
    id: "d_1",
    name: "web",
    namespace: "demo",
    workspace: "ws_1",
    project: "p_1",
    environment: "env_1",
    image: "web:1",
    replicas: 1,
    cpu: "250m",
    memory: "256Mi",
  });
});

test("a healthcheck that another program wrote is shown as far as krane reads it", () => {
  const init = { healthcheck: json({ path: "/up", timeoutSeconds: null, colour: "green" }) };
  const shown = documentOf({ kind: "deployment", spec: create(ApplyDeploymentSchema, init) }, kinds);
  assert.deepEqual(shown["healthcheck"], { path: "/up" });
  const none = documentOf(
    { kind: "deployment", spec: create(ApplyDeploymentSchema, { healthcheck: json(null) }) },
    kinds,
  );
  assert.equal("healthcheck" in none, false);
});

function documentsOf(text: string) {
  const parsed = parseDocuments([{ name: "a.yaml", text }], kinds);
  return parsed.kind === "valid" ? parsed.documents : [];
}
