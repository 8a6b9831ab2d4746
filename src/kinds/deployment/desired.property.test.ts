import assert from "node:assert/strict";
import { test } from "node:test";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { utf8 } from "../../../test/support/deployment-messages.ts";
import { type ApplyDeployment, ApplyDeploymentSchema } from "../../gen/ctrl/v1/deployment_pb.ts";
import { describeProblems } from "../../model/field-problem.ts";
import { isDns1035Label, isDns1123Label, isLabelValue } from "../../model/names.ts";
import { type DeploymentSettings, desiredDeployment } from "./desired.ts";
import { parseApplyDeployment } from "./spec.ts";

const settings: DeploymentSettings = {
  secrets: { audience: "krane", endpoint: "http://krane.platform.svc:8070" },
  registry: { host: "registry.example", username: "robot", password: { reveal: () => "secret" } },
};

const id = fc.stringMatching(/^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$/);
const name = fc.stringMatching(/^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$/);
const count = fc.integer({ min: 0, max: 86_400 });

const good = {
  k8sNamespace: name.filter((text) => !/^(kube-.*|default|sentinel)$/.test(text)),
  k8sName: name,
  workspaceId: id,
  projectId: id,
  environmentId: id,
  deploymentId: id,
  image: fc.stringMatching(/^(registry\.example\/)?[a-z]{1,9}(\/[a-z]{1,9}){0,2}(:[a-z0-9]{1,9})?$/),
  replicas: fc.integer({ min: 0, max: 10_000 }),
  cpuMillicores: fc.bigInt(1n, 1_024_000n),
  memoryMib: fc.bigInt(1n, 2n ** 26n),
  buildId: fc.option(id, { nil: undefined }),
  encryptedEnvironmentVariables: fc
    .dictionary(fc.stringMatching(/^[A-Z]{1,3}$/), fc.base64String())
    .map((secrets) => utf8(JSON.stringify({ secrets }))),
  command: fc.array(fc.stringMatching(/^[^\0\ud800-\udfff]{1,20}$/), { maxLength: 5 }),
  port: fc.integer({ min: 0, max: 65_535 }),
  shutdownSignal: fc.constantFrom("", "SIGTERM", "SIGINT", "SIGQUIT", "SIGKILL"),
  pullSecret: fc.constantFrom("", "krane-registry-acme"),
  env: fc.dictionary(fc.stringMatching(/^[A-Z_]{1,3}$/), fc.stringMatching(/^[^\0\ud800-\udfff]{0,9}$/), {
    noNullPrototype: true,
  }),
  healthcheck: fc.option(
    fc
      .record({
        method: fc.constantFrom("GET", "POST"),
        path: fc.stringMatching(/^\/[!-~]{0,20}$/),
        intervalSeconds: count,
        timeoutSeconds: count,
        initialDelaySeconds: count,
        failureThreshold: fc.integer({ min: 0, max: 1_000 }),
      })
      .map((check) => utf8(JSON.stringify(check))),
    { nil: undefined },
  ),
};

const anyText = fc.string({ unit: "binary" });
const anyBytes = fc.oneof(
  fc.uint8Array().map((bytes) => Uint8Array.from(bytes)),
  fc.json().map(utf8),
  fc
    .record({ method: fc.jsonValue(), path: fc.jsonValue(), secrets: fc.jsonValue() }, { requiredKeys: [] })
    .map((value) => utf8(JSON.stringify(value))),
);

/** Mixes valid and arbitrary values, so that messages get past the first check. */
const anyMessage = fc
  .record({
    k8sNamespace: fc.oneof(good.k8sNamespace, anyText),
    k8sName: fc.oneof(name, anyText),
    workspaceId: fc.oneof(id, anyText),
    projectId: fc.oneof(id, anyText),
    environmentId: fc.oneof(id, anyText),
    deploymentId: fc.oneof(id, anyText),
    image: fc.oneof(good.image, anyText),
    replicas: fc.oneof(good.replicas, fc.integer(), fc.double()),
    cpuMillicores: fc.oneof(good.cpuMillicores, fc.bigInt()),
    memoryMib: fc.oneof(good.memoryMib, fc.bigInt()),
    buildId: fc.option(anyText, { nil: undefined }),
    encryptedEnvironmentVariables: anyBytes,
    command: fc.array(anyText),
    port: fc.oneof(good.port, fc.integer()),
    shutdownSignal: fc.oneof(good.shutdownSignal, anyText),
    pullSecret: fc.oneof(good.pullSecret, anyText),
    env: fc.oneof(good.env, fc.dictionary(anyText, anyText, { noNullPrototype: true })),
    healthcheck: fc.option(anyBytes, { nil: undefined }),
  })
  .map(({ buildId, healthcheck, ...rest }) => messageOf({ ...rest, buildId, healthcheck }));

function messageOf(fields: Partial<Omit<ApplyDeployment, "$typeName" | "$unknown">>): ApplyDeployment {
  const { buildId, healthcheck, ...rest } = fields;
  return create(ApplyDeploymentSchema, {
    ...rest,
    ...(buildId !== undefined && { buildId }),
    ...(healthcheck !== undefined && { healthcheck }),
  });
}

/** Calls `visit` for every nested object, with its key. */
function walk(value: unknown, key: string, visit: (key: string, value: object) => void): void {
  if (typeof value !== "object" || value === null) return;
  visit(key, value);
  for (const [name, member] of Object.entries(value)) walk(member, name, visit);
}

test("whatever a message says, it is accepted or refused with paths of its own fields", () => {
  const fields = new Set(ApplyDeploymentSchema.fields.map((field) => field.name));
  fc.assert(
    fc.property(anyMessage, (message) => {
      const parsed = parseApplyDeployment(message, { ownNamespace: "platform", registries: [] });
      if (parsed.kind === "valid") return;
      assert.ok(parsed.problems.length > 0);
      for (const { path, message } of parsed.problems) {
        assert.ok(fields.has(/^\w+/.exec(path)?.[0] ?? ""), path);
        assert.match(`${path} ${message}`, /^[ -~]*$/, "a problem is one line of plain text");
      }
    }),
    { numRuns: 1_000 },
  );
});

test("bytes that decode at all are accepted or refused", () => {
  fc.assert(
    fc.property(fc.record(good), fc.nat(), fc.nat(255), (fields, at, byte) => {
      const bytes = toBinary(ApplyDeploymentSchema, messageOf(fields));
      bytes[at % bytes.length] = byte;
      let message: ApplyDeployment;
      try {
        message = fromBinary(ApplyDeploymentSchema, bytes);
      } catch {
        return;
      }
      parseApplyDeployment(message, { registries: ["registry.example"] });
    }),
  );
});

test("the names and labels of a valid deployment are valid in Kubernetes", () => {
  fc.assert(
    fc.property(fc.record(good), fc.array(good.port), (fields, otherPorts) => {
      const parsed = parseApplyDeployment(messageOf(fields), { registries: [] });
      assert.ok(parsed.kind === "valid", parsed.kind === "invalid" ? describeProblems(parsed.problems) : "");
      const objects = desiredDeployment(parsed.spec, settings, otherPorts);
      assert.deepEqual(objects, desiredDeployment(parsed.spec, settings, otherPorts.toReversed()));
      for (const { kind, manifest } of objects) {
        assert.ok(
          kind === "namespace"
            ? isDns1123Label(manifest.metadata?.name ?? "")
            : isDns1035Label(manifest.metadata?.name ?? ""),
        );
        assert.equal(manifest.metadata?.namespace, kind === "namespace" ? undefined : fields.k8sNamespace);
        walk(manifest, "", (key, value) => {
          if (key !== "labels" && key !== "matchLabels") return;
          for (const label of Object.values(value)) assert.ok(isLabelValue(label), label);
        });
        assert.deepEqual(JSON.parse(JSON.stringify(manifest)), manifest, "nothing in it is lost in JSON");
      }
    }),
  );
});
