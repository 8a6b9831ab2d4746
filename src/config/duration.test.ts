import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { formatDuration, parseDuration } from "./duration.ts";

test("durations are parsed as in Go", () => {
  const cases: [string, number][] = [
    ["1s", 1_000],
    ["500ms", 500],
    ["5m", 300_000],
    ["1h30m", 5_400_000],
    ["1.5h", 5_400_000],
    [".5s", 500],
    ["1.s", 1_000],
    ["+2s", 2_000],
    ["-2s", -2_000],
    ["250us", 0.25],
    ["250µs", 0.25],
    ["250μs", 0.25],
    ["1000000ns", 1],
    ["0", 0],
    ["0s", 0],
    ["1m1m", 120_000],
  ];
  for (const [text, ms] of cases) assert.equal(parseDuration(text), ms, text);
});

test("everything else is not a duration", () => {
  const cases = [
    "",
    "+",
    "1",
    "s",
    "1 s",
    "1s ",
    " 1s",
    "1S",
    "1d",
    "1e3s",
    "..5s",
    "1..s",
    "1s-1s",
    "NaNs",
    "0x1s",
  ];
  for (const text of [...cases, "1s".repeat(33)]) assert.equal(parseDuration(text), undefined, text);
});

test("a formatted duration parses to the same value", () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 1_000_000_000 }), (ms) => {
      assert.equal(parseDuration(formatDuration(ms)), ms);
    }),
  );
  assert.equal(formatDuration(0), "0s");
  assert.equal(formatDuration(5_400_000), "1h30m");
  assert.equal(formatDuration(1_500), "1s500ms");
});
