import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { formatQuantity, parseQuantity } from "./quantities.ts";

function canonical(text: string | number): string | undefined {
  const quantity = parseQuantity(text);
  return quantity === undefined ? undefined : formatQuantity(quantity);
}

test("quantities are formatted in canonical form", () => {
  const cases: readonly [string | number, string][] = [
    ["1000m", "1"],
    ["0.5", "500m"],
    ["1500m", "1500m"],
    ["1024Mi", "1Gi"],
    ["1.5Gi", "1536Mi"],
    ["1000Ki", "1000Ki"],
    ["512", "512"],
    ["12000", "12k"],
    ["1e3", "1e3"],
    ["0Mi", "0"],
    ["-1000m", "-1"],
    ["+2", "2"],
    [".5", "500m"],
    [2, "2"],
    ["0.0000000001", "1n"],
  ];
  for (const [given, expected] of cases) assert.equal(canonical(given), expected, String(given));
});

test("invalid quantities are rejected", () => {
  for (const text of ["", "abc", "1 Gi", "1GiB", "--1", "1.2.3", "1K"])
    assert.equal(canonical(text), undefined, text);
  assert.equal(parseQuantity(true), undefined);
});

test("canonical form is stable and keeps the amount", () => {
  const suffix = fc.constantFrom("", "m", "k", "M", "G", "Ki", "Mi", "Gi", "u", "n", "e3", "E");
  fc.assert(
    fc.property(fc.nat(1_000_000), suffix, (amount, unit) => {
      const text = `${amount}${unit}`;
      const once = canonical(text) ?? "";
      assert.equal(canonical(once), once);
      assert.equal(parseQuantity(once)?.nanos, parseQuantity(text)?.nanos);
    }),
  );
});
