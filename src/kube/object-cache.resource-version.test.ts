import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { hasReached, isOlder } from "./object-cache.ts";

test("decimal versions of any length are compared as numbers", () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 2n ** 80n }), fc.bigInt({ min: 0n, max: 2n ** 80n }), (a, b) => {
      assert.equal(isOlder(String(a), String(b)), a < b);
      assert.equal(hasReached(String(a), String(b)), a >= b);
    }),
  );
});

test("versions that are not decimal numbers are never older", () => {
  for (const [a, b] of [
    ["a", "b"],
    ["1", "b"],
    ["", "1"],
    ["01", "2"],
  ] as const) {
    assert.equal(isOlder(a, b), false);
    assert.equal(hasReached(a, b), false);
  }
  assert.equal(hasReached("a", "a"), true);
});
