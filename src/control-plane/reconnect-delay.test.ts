import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createSeededRandom } from "../concurrency/random.ts";
import { createReconnectDelay, type EndedConnection } from "./reconnect-delay.ts";

const futile: EndedConnection = { broughtMessages: false, livedMs: 20, code: "unavailable" };

/** The shortest and the longest of many first, second, third ... delays after connections that ended this way. */
function spread(ended: EndedConnection, attempts: number) {
  const ranges = Array.from({ length: attempts }, () => ({ min: Number.POSITIVE_INFINITY, max: 0 }));
  for (let seed = 1; seed <= 2_000; seed++) {
    const delay = createReconnectDelay(createSeededRandom(seed));
    for (const range of ranges) {
      const ms = delay.afterMs(ended);
      range.min = Math.min(range.min, ms);
      range.max = Math.max(range.max, ms);
    }
  }
  return ranges;
}

describe("the delay before a reconnect", () => {
  test("is random from 1 s up to a cap that grows from 5 s to 60 s while connections deliver nothing", () => {
    const caps = [5_000, 10_000, 20_000, 40_000, 60_000, 60_000];
    for (const [attempt, { min, max }] of spread(futile, caps.length).entries()) {
      const cap = caps[attempt] ?? 0;
      assert.ok(min >= 1_000 && min < 1_100, `attempt ${attempt}: min ${min}`);
      assert.ok(max <= cap && max > cap * 0.97, `attempt ${attempt}: max ${max}`);
    }
  });

  test("is spread evenly", () => {
    const bins = [0, 0, 0, 0];
    for (let seed = 1; seed <= 4_000; seed++) {
      const ms = createReconnectDelay(createSeededRandom(seed)).afterMs(futile);
      const bin = Math.floor((ms - 1_000) / 1_000);
      bins[bin] = (bins[bin] ?? 0) + 1;
    }
    for (const count of bins) assert.ok(count > 850 && count < 1_150, String(bins));
  });

  test("starts over after a message or 15 s, and after nothing else", () => {
    for (const [ended, capMs] of [
      [{ broughtMessages: true, livedMs: 1 }, 5_000],
      [{ broughtMessages: false, livedMs: 15_000 }, 5_000],
      [{ broughtMessages: false, livedMs: 14_999 }, 60_000],
    ] as const) {
      const longest = Math.max(...spread(ended, 8).map(({ max }) => max));
      assert.ok(longest <= capMs && longest > capMs * 0.97, `${longest} for a cap of ${capMs}`);
    }
  });

  test("does not grow while streams that were open end with the hint to come back", () => {
    const hinted = { ...futile, retryAfterMs: 1_000 };
    for (const [ended, capMs] of [
      [{ ...hinted, livedMs: 1_000 }, 5_000],
      [{ ...hinted, livedMs: 999 }, 60_000],
    ] as const) {
      const longest = Math.max(...spread(ended, 8).map(({ max }) => max));
      assert.ok(longest <= capMs && longest > capMs * 0.97, `${longest} for a cap of ${capMs}`);
    }
  });

  test("does not grow while the control plane has never answered and cannot be reached", () => {
    for (const { min, max } of spread({ ...futile, reach: "unreachable" }, 8)) {
      assert.ok(min >= 1_000 && min < 1_100, `min ${min}`);
      assert.ok(max <= 5_000 && max > 4_850, `max ${max}`);
    }
  });

  for (const { what, first } of [
    { what: "a message", first: { broughtMessages: true, livedMs: 1 } },
    { what: "a connection of 15 s", first: { broughtMessages: false, livedMs: 15_000 } },
    { what: "an end without an error", first: { broughtMessages: false, livedMs: 1 } },
    { what: "a refusal", first: { ...futile, code: "resource_exhausted", reach: "answered" } },
  ] as const)
    test(`grows although it cannot be reached now, after ${what}`, () => {
      let longest = 0;
      for (let seed = 1; seed <= 500; seed++) {
        const delay = createReconnectDelay(createSeededRandom(seed));
        delay.afterMs(first);
        for (let attempt = 0; attempt < 6; attempt++)
          longest = Math.max(longest, delay.afterMs({ ...futile, reach: "unreachable" }));
      }
      assert.ok(longest > 58_000 && longest <= 60_000, `${longest}`);
    });

  test("is at least the server's hint, and still spread", () => {
    const [first] = spread({ ...futile, retryAfterMs: 20_000 }, 1);
    assert.ok(first !== undefined && first.min >= 20_000 && first.max > 23_500 && first.max <= 24_000);
  });

  test("is at least 30 s when the token is rejected", () => {
    for (const code of ["unauthenticated", "permission_denied"] as const)
      for (const { min, max } of spread({ ...futile, code }, 6)) {
        assert.ok(min >= 30_000, `${min}`);
        assert.ok(max <= 60_000, `${max}`);
      }
  });
});
