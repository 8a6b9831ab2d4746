import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { sortedNames } from "./sorted-names.ts";

test("names are in the same order as sort() gives, few or many", () => {
  const names = fc.uniqueArray(fc.string({ unit: "binary", maxLength: 6 }), { maxLength: 60, size: "max" });
  fc.assert(
    fc.property(names, (some) => {
      const value = Object.fromEntries(some.map((name) => [name, 1]));
      assert.deepEqual(sortedNames(value), Object.keys(value).sort());
    }),
  );
});
