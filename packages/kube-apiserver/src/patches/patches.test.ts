import assert from "node:assert/strict";
import { test } from "node:test";
import { builtinSchema } from "../builtin-schemas.ts";
import type { Json, JsonObject } from "../json.ts";
import { applyJsonPatch, JsonPatchError } from "./json-patch.ts";
import { applyMergePatch } from "./merge-patch.ts";
import { applyStrategicPatch } from "./strategic-merge-patch.ts";

test("a JSON patch applies all of its operations", () => {
  const target = { a: { b: [1, 2, 3] }, "x/y": 1 };
  const patched = applyJsonPatch(target, [
    { op: "test", path: "/a/b/0", value: 1 },
    { op: "add", path: "/a/b/1", value: 9 },
    { op: "add", path: "/a/b/-", value: 4 },
    { op: "replace", path: "/x~1y", value: 2 },
    { op: "copy", from: "/a/b/0", path: "/c" },
    { op: "move", from: "/c", path: "/d" },
    { op: "remove", path: "/a/b/2" },
  ]);
  assert.deepEqual(patched, { a: { b: [1, 9, 3, 4] }, "x/y": 2, d: 1 });
  assert.deepEqual(target, { a: { b: [1, 2, 3] }, "x/y": 1 });
});

test("a JSON patch that does not apply is rejected", () => {
  for (const operation of [
    { op: "test", path: "/a", value: 2 },
    { op: "remove", path: "/none" },
    { op: "replace", path: "/list/0", value: 1 },
    { op: "add", path: "/list/5", value: 1 },
    { op: "add", path: "/a/b", value: 1 },
    { op: "add", path: "a", value: 1 },
    { op: "nope", path: "/a" },
  ]) {
    assert.throws(
      () => applyJsonPatch({ a: 1, list: [] }, [operation]),
      JsonPatchError,
      JSON.stringify(operation),
    );
  }
});

test("a merge patch removes with null and replaces lists", () => {
  const patched = applyMergePatch(
    { a: { b: 1, c: 2 }, l: [1, 2], s: "x" },
    { a: { b: null, d: 3 }, l: [9], s: { n: 1 } },
  );
  assert.deepEqual(patched, { a: { c: 2, d: 3 }, l: [9], s: { n: 1 } });
  const named = applyMergePatch({}, JSON.parse('{"__proto__":{"x":1}}') as Json);
  assert.equal(JSON.stringify(named), '{"__proto__":{"x":1}}');
});

const schema = builtinSchema("io.k8s.api.core.v1.PodSpec");

function patchContainers(containers: readonly JsonObject[], patch: JsonObject): Json | undefined {
  const patched = applyStrategicPatch(schema, { containers: [...containers] }, patch) as JsonObject;
  return patched["containers"];
}

test("a strategic patch merges lists by their key", () => {
  const containers = [
    { name: "a", image: "1" },
    { name: "b", image: "2" },
  ];
  assert.deepEqual(patchContainers(containers, { containers: [{ name: "b", image: "3" }] }), [
    { name: "a", image: "1" },
    { name: "b", image: "3" },
  ]);
  assert.deepEqual(
    patchContainers(containers, { containers: [{ name: "a", $patch: "delete" }, { name: "c" }] }),
    [{ name: "c" }, { name: "b", image: "2" }],
  );
  assert.deepEqual(patchContainers(containers, { containers: [{ $patch: "replace" }, { name: "c" }] }), [
    { name: "c" },
  ]);
  assert.deepEqual(
    patchContainers(containers, { "$setElementOrder/containers": [{ name: "b" }, { name: "a" }] }),
    [...containers].reverse(),
  );
});

test("a strategic patch replaces lists without a key, and whole maps with $patch: replace", () => {
  const patched = applyStrategicPatch(
    schema,
    { tolerations: [{ key: "a" }], nodeSelector: { a: "1" }, hostNetwork: true },
    { tolerations: [{ key: "b" }], nodeSelector: { $patch: "replace", b: "2" }, hostNetwork: null },
  );
  assert.deepEqual(patched, { tolerations: [{ key: "b" }], nodeSelector: { b: "2" } });
});

test("a strategic patch removes values from lists of primitives", () => {
  const metadata = builtinSchema("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
  const patched = applyStrategicPatch(
    metadata,
    { finalizers: ["a", "b", "c"] },
    { "$deleteFromPrimitiveList/finalizers": ["b"], finalizers: ["d"] },
  ) as JsonObject;
  assert.deepEqual(new Set(patched["finalizers"] as string[]), new Set(["a", "c", "d"]));
});
