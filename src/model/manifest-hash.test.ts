import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { annotationKeys } from "./labels.ts";
import { hashOf, withManifestHash, withTemplateHash } from "./manifest-hash.ts";

test("the hash does not depend on the order of keys", () => {
  assert.equal(hashOf({ a: 1, b: { c: [1, 2], d: null } }), hashOf({ b: { d: null, c: [1, 2] }, a: 1 }));
});

test("the hash depends on every value, on the order of lists, and on null or absent", () => {
  const values = [
    {},
    { a: 1 },
    { a: "1" },
    { a: null },
    { a: [] },
    { a: {} },
    { a: [1, 2] },
    { a: [2, 1] },
    { b: 1 },
  ];
  assert.equal(new Set(values.map(hashOf)).size, values.length);
  assert.equal(hashOf({ a: undefined }), hashOf({}));
});

test("equal JSON has the same hash", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      assert.equal(hashOf(value), hashOf(JSON.parse(JSON.stringify(value))));
    }),
  );
});

// It is stored on every object of every cluster: if it changed, the next version of krane would apply all of them.
test("the hash of a known value never changes", () => {
  assert.equal(hashOf({ kind: "ReplicaSet", spec: { replicas: 3 } }), "oRLff1tnNNvdkAVO");
});

test("a manifest keeps its own annotations beside the hash, and the original is not modified", () => {
  const manifest = { metadata: { name: "web", annotations: { mine: "1" } } };
  const hashed = withManifestHash(manifest);
  assert.deepEqual(hashed.metadata.annotations, {
    mine: "1",
    [annotationKeys.manifestHash]: hashOf(manifest),
  });
  assert.equal(hashed.metadata.name, "web");
  assert.deepEqual(manifest.metadata.annotations, { mine: "1" });
});

test("a template without metadata gets a hash too", () => {
  const template: { metadata?: { annotations?: Record<string, string> } } = {};
  assert.equal(withTemplateHash(template).metadata?.annotations?.[annotationKeys.templateHash], hashOf({}));
});
