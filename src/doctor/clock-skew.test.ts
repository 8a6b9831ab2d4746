import assert from "node:assert/strict";
import { test } from "node:test";
import { clockSkewMs, judgeClock } from "./clock-skew.ts";

const date = "Sun, 15 Nov 2026 12:00:00 GMT";
const writtenMs = Date.UTC(2026, 10, 15, 12);

function skew(sentAtMs: number, receivedAtMs: number): number | undefined {
  return clockSkewMs({ date, sentAtMs, receivedAtMs });
}

test("a date between request and response shows no skew", () => {
  assert.equal(skew(writtenMs, writtenMs + 10), 0);
  assert.equal(skew(writtenMs - 2_000, writtenMs + 3_000), 0);
  // The header has whole seconds, so it may have been written up to a second later.
  assert.equal(skew(writtenMs + 900, writtenMs + 950), 0);
});

test("the skew is the smallest that explains the response", () => {
  assert.equal(skew(writtenMs + 60_000, writtenMs + 60_010), -59_001);
  assert.equal(skew(writtenMs - 60_010, writtenMs - 60_000), 60_000);
});

test("an invalid date header gives no result", () => {
  assert.equal(clockSkewMs({ date: undefined, sentAtMs: 0, receivedAtMs: 0 }), undefined);
  const answer = { date: "noon", sentAtMs: 0, receivedAtMs: 0 };
  assert.equal(judgeClock("clock", "the cluster", answer).state, "skipped");
});

test("a small skew is ok, 5 s are a warning, half a minute is a problem", () => {
  const states = [0, 4_000, 6_000, 29_000, 31_000, 3_600_000].flatMap((aheadMs) =>
    [-1, 1].map((sign) => {
      const nowMs = writtenMs + sign * aheadMs;
      return judgeClock("clock", "the cluster", { date, sentAtMs: nowMs, receivedAtMs: nowMs }).state;
    }),
  );
  assert.deepEqual(states, [
    ...["ok", "ok", "ok", "ok"],
    ...["warning", "warning", "warning", "warning"],
    ...["problem", "problem", "problem", "problem"],
  ]);
});
