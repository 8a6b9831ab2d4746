import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import fc from "fast-check";
import { applySentinel, sentinelSpec } from "../../../test/support/sentinel-messages.ts";
import { ApplySentinelSchema, DeleteSentinelSchema } from "../../gen/ctrl/v1/sentinel_pb.ts";
import { gossipName } from "./identity.ts";
import { parseApplySentinel, parseDeleteSentinel } from "./spec.ts";

type Overrides = Parameters<typeof applySentinel>[0];

function pathsOf(overrides: Overrides, registries: readonly string[] = []): readonly string[] {
  const parsed = parseApplySentinel(applySentinel(overrides), { registries });
  return parsed.kind === "invalid" ? parsed.problems.map(({ path }) => path) : [];
}

const names: readonly (readonly [string, string])[] = [
  ["no name", ""],
  ["a name of 53 characters", "g".repeat(53)],
  ["a name that starts with a digit", "1gate"],
  ["a name in capitals", "Gate"],
  ["a name that climbs", "../gate"],
  ["a name with a dot", "gate.one"],
  ["the name of another sentinel's gossip objects", "gate-gossip-lan"],
];

const invalid: readonly (readonly [string, Overrides, string])[] = [
  ...names.map(([what, k8sName]) => [what, { k8sName }, "k8s_name"] as const),
  ["no workspace", { workspaceId: "" }, "workspace_id"],
  ["a workspace that no label can hold", { workspaceId: 'ws"1' }, "workspace_id"],
  ["no project", { projectId: "" }, "project_id"],
  ["a project of 64 characters", { projectId: "p".repeat(64) }, "project_id"],
  ["no environment", { environmentId: "" }, "environment_id"],
  ["an environment with a placeholder", { environmentId: "${" + "HOME}" }, "environment_id"],
  ["no id", { sentinelId: "" }, "sentinel_id"],
  ["an id with a line break", { sentinelId: "se_1\n" }, "sentinel_id"],
  ["no image", { image: "" }, "image"],
  ["an image with a space", { image: "registry.example/sentinel 1" }, "image"],
  ["fewer than no replicas", { replicas: -1 }, "replicas"],
  ["too many replicas", { replicas: 2_147_483_647 }, "replicas"],
  ["no CPU", { cpuMillicores: 0n }, "cpu_millicores"],
  ["more CPU than a number can tell", { cpuMillicores: 2n ** 63n - 1n }, "cpu_millicores"],
  ["no memory", { memoryMib: 0n }, "memory_mib"],
  ["memory in bytes", { memoryMib: 2n ** 30n }, "memory_mib"],
];

for (const [what, overrides, path] of invalid) {
  test(`${what} is refused at ${path}`, () => {
    assert.deepEqual(pathsOf(overrides), [path]);
  });
}

for (const [what, k8sName] of names) {
  test(`${what} is refused in an order to delete, too`, () => {
    const parsed = parseDeleteSentinel(create(DeleteSentinelSchema, { k8sName }));
    assert.equal(parsed.kind, "invalid");
  });
}

test("everything that is wrong is said at once", () => {
  const { fields } = ApplySentinelSchema;
  const parsed = parseApplySentinel(create(ApplySentinelSchema, { replicas: -1 }), { registries: [] });
  assert.ok(parsed.kind === "invalid");
  assert.deepEqual(parsed.problems.map(({ path }) => path).sort(), fields.map(({ name }) => name).sort());
});

test("an image of a registry that is not on the list is refused", () => {
  assert.deepEqual(pathsOf({}, ["other.example"]), ["image"]);
  assert.deepEqual(pathsOf({}, ["other.example", "registry.example"]), []);
});

test("the longest name leaves room for its gossip objects, and a delete means the same sentinel", () => {
  const spec = sentinelSpec({ k8sName: "g".repeat(52), replicas: 0 });
  assert.equal(gossipName(spec.name).length, 63);
  assert.equal(spec.replicas, 0);
  assert.deepEqual(parseDeleteSentinel(create(DeleteSentinelSchema, { k8sName: spec.name })), {
    kind: "valid",
    spec: { namespace: "sentinel", name: spec.name },
  });
});

test("whatever a message says, it is accepted or refused with paths of its own fields", () => {
  const known = new Set<string>(ApplySentinelSchema.fields.map(({ name }) => name));
  const text = fc.oneof(fc.stringMatching(/^[a-z][a-z0-9]{0,9}$/), fc.string({ unit: "binary" }));
  const message = fc.record({
    k8sName: text,
    workspaceId: text,
    projectId: text,
    environmentId: text,
    sentinelId: text,
    image: text,
    replicas: fc.oneof(fc.nat(9), fc.double()),
    cpuMillicores: fc.bigInt(),
    memoryMib: fc.bigInt(),
  });
  fc.assert(
    fc.property(message, (fields) => {
      const parsed = parseApplySentinel(create(ApplySentinelSchema, fields), { registries: [] });
      if (parsed.kind === "valid") return;
      for (const { path, message } of parsed.problems) {
        assert.ok(known.has(path), path);
        assert.match(message, /^[ -~]+$/, "a problem is one line of plain text");
      }
    }),
  );
});
