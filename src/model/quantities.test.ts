import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  mebibytes,
  millicores,
  parseMebibytes,
  parseMillicores,
  wholeMebibytes,
  wholeMillicores,
} from "./quantities.ts";

const mib = 2n ** 20n;

for (const [text, expected] of [
  ["100m", 100n],
  ["1", 1_000n],
  ["+1", 1_000n],
  ["0.07", 70n],
  [".5", 500n],
  ["1.", 1_000n],
  ["1.005", 1_005n],
  ["1.0001", 1_001n],
  ["2k", 2_000_000n],
  ["1e3", 1_000_000n],
  ["1E3", 1_000_000n],
  ["1e-1", 100n],
  ["1n", 1n],
  ["250u", 1n],
  ["0", 0n],
] as const) {
  test(`${text} of CPU is ${expected} millicores`, () => {
    assert.equal(parseMillicores(text), expected);
  });
}

for (const [text, expected] of [
  ["128Mi", 128n],
  ["1Gi", 1_024n],
  ["1.5Gi", 1_536n],
  ["1Ki", 0n],
  ["1048576", 1n],
  ["1048575", 0n],
  ["1e9", 953n],
  ["1G", 953n],
  ["1E", 953_674_316_406n],
  ["1Ei", 2n ** 40n],
  ["134217728000m", 128n],
] as const) {
  test(`${text} of memory is ${expected} MiB`, () => {
    assert.equal(parseMebibytes(text), expected);
  });
}

test("an invalid quantity counts as 0", () => {
  for (const text of [
    undefined,
    "",
    ".",
    "m",
    "Mi",
    "-1",
    "1 Gi",
    "1gi",
    "0x10",
    "1e",
    "1e999",
    "NaN",
    "1Mi ",
  ]) {
    assert.equal(parseMillicores(text), 0n, String(text));
    assert.equal(parseMebibytes(text), 0n, String(text));
  }
});

test("an amount above int64 becomes its largest value", () => {
  assert.equal(parseMillicores("1e99"), 2n ** 63n - 1n);
  assert.equal(parseMebibytes("9".repeat(40)), 2n ** 63n - 1n);
});

test("what krane writes is parsed back unchanged", () => {
  fc.assert(
    fc.property(fc.nat(2 ** 30), (amount) => {
      assert.equal(parseMillicores(millicores(amount)), BigInt(amount));
      assert.equal(parseMebibytes(mebibytes(amount)), BigInt(amount));
      assert.equal(parseMebibytes(String(BigInt(amount) * mib)), BigInt(amount));
    }),
  );
});

test("an amount that a person asks for is exact or rejected", () => {
  assert.deepEqual(
    ["250m", "1", "0.5", "0.07", "1e3", "0.0005", "1n", "", "-1", "a", "1Gi m"].map(wholeMillicores),
    [250n, 1000n, 500n, 70n, 1_000_000n, undefined, undefined, undefined, undefined, undefined, undefined],
  );
  assert.deepEqual(["256Mi", "1Gi", "0.5Gi", "1048576", "256", "256M", "1Ki", "lots"].map(wholeMebibytes), [
    256n,
    1024n,
    512n,
    1n,
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
});
