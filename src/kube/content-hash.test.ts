import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { createContentHash } from "./content-hash.ts";

const hash = createContentHash({ fields: [["metadata", "labels"], ["spec"]] });

function reordered(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reordered);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([name, member]) => [name, reordered(member)]),
  );
}

test("the order of keys does not matter, any difference in content does", () => {
  const json = fc.jsonValue({ noUnicodeString: false }).map((value) => JSON.parse(JSON.stringify(value)));
  fc.assert(
    fc.property(json, json, (a, b) => {
      assert.equal(hash({ spec: a }), hash({ spec: reordered(a) }));
      const same = JSON.stringify(a) === JSON.stringify(b);
      if (!same && JSON.stringify(reordered(a)) !== JSON.stringify(b)) {
        assert.equal(hash({ spec: a }) === hash({ spec: b }), isSame(a, b));
      }
    }),
  );
});

function isSame(a: unknown, b: unknown): boolean {
  try {
    assert.deepStrictEqual(a, b);
    return true;
  } catch {
    return false;
  }
}

test("fields that were not named do not matter; absent, null and empty differ", () => {
  assert.equal(
    hash({ spec: { a: 1 }, status: 1 }),
    hash({ spec: { a: 1 }, status: 2, metadata: { name: "x" } }),
  );
  const states = [{}, { spec: null }, { spec: {} }, { spec: [] }, { spec: "" }, { metadata: { labels: {} } }];
  assert.equal(new Set(states.map(hash)).size, states.length);
});

test("an ignored part does not matter", () => {
  const lenient = createContentHash({
    fields: [["metadata", "annotations"]],
    ignore: (path) => path.at(-1) === "deployment.kubernetes.io/revision",
  });
  const annotated = (revision: string) => ({
    metadata: { annotations: { a: "1", "deployment.kubernetes.io/revision": revision } },
  });
  assert.equal(lenient(annotated("1")), lenient(annotated("2")));
  assert.equal(lenient(annotated("1")), lenient({ metadata: { annotations: { a: "1" } } }));
});
