import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type BackoffOptions, backoffDelayMs, clampRetryAfterMs, createBackoff } from "./backoff.ts";
import { createSeededRandom } from "./random.ts";

const lowest = { next: () => 0 };
const highest = { next: () => 1 - 2 ** -32 };
const reconnects: BackoffOptions = { minMs: 1_000, initialMs: 5_000, maxMs: 60_000, jitter: "full" };
const retries: BackoffOptions = { initialMs: 200, maxMs: 30_000, jitter: "equal" };

function bounds(options: BackoffOptions, attempts: number): [number, number][] {
  const low = createBackoff(options, lowest);
  const high = createBackoff(options, highest);
  return Array.from({ length: attempts }, () => [Math.round(low.nextMs()), Math.round(high.nextMs())]);
}

test("full jitter is random between the minimum and a cap that doubles up to the maximum", () => {
  assert.deepEqual(bounds(reconnects, 6), [
    [1_000, 5_000],
    [1_000, 10_000],
    [1_000, 20_000],
    [1_000, 40_000],
    [1_000, 60_000],
    [1_000, 60_000],
  ]);
});

test("equal jitter is random in the upper half of the cap", () => {
  assert.deepEqual(bounds({ ...retries, factor: 10 }, 4), [
    [100, 200],
    [1_000, 2_000],
    [10_000, 20_000],
    [15_000, 30_000],
  ]);
});

test("a reset starts again from the first wait", () => {
  const backoff = createBackoff(retries, highest);
  const first = backoff.nextMs();
  backoff.nextMs();
  backoff.nextMs();
  backoff.reset();
  assert.equal(backoff.nextMs(), first);
});

test("no wait is below the minimum, above the maximum or not a number, in thousands of attempts", () => {
  const anyOptions = fc
    .record({
      sizes: fc.array(fc.integer({ min: 1, max: 1e7 }), { minLength: 3, maxLength: 3 }),
      factor: fc.double({ min: 1, max: 1e6, noNaN: true }),
      jitter: fc.constantFrom("full" as const, "equal" as const),
    })
    .map(({ sizes, factor, jitter }): BackoffOptions => {
      const [minMs = 1, initialMs = 1, maxMs = 1] = sizes.toSorted((a, b) => a - b);
      return { minMs, initialMs, maxMs, factor, jitter };
    });
  fc.assert(
    fc.property(anyOptions, fc.integer(), (options, seed) => {
      const backoff = createBackoff(options, createSeededRandom(seed));
      for (let attempt = 0; attempt < 1_100; attempt++) {
        const waitMs = backoff.nextMs();
        assert.ok(waitMs >= (options.minMs ?? 0) && waitMs <= options.maxMs, `attempt ${attempt}: ${waitMs}`);
      }
    }),
  );
});

test("waits are spread: two clients that fail together do not come back together", () => {
  const random = createSeededRandom(1);
  const waits = Array.from({ length: 1_000 }, () => backoffDelayMs(reconnects, 9, random));
  assert.equal(new Set(waits).size, waits.length);
  assert.ok(waits.filter((waitMs) => waitMs < 30_500).length > 400);
  assert.ok(waits.filter((waitMs) => waitMs > 30_500).length > 400);
});

for (const [fault, options] of Object.entries({
  "an initial wait of 0": { ...retries, initialMs: 0 },
  "an initial wait above the maximum": { ...retries, maxMs: 100 },
  "a minimum above the initial wait": { ...retries, minMs: 300 },
  "a shrinking factor": { ...retries, factor: 0.5 },
  "an endless maximum": { ...retries, maxMs: Number.POSITIVE_INFINITY },
  "a maximum that is not a number": { ...retries, maxMs: Number.NaN },
}))
  test(`back-off rejects ${fault}`, () => {
    assert.throws(() => createBackoff(options, lowest), RangeError);
  });

test("a server's retry hint is clamped to 1 to 60 seconds", () => {
  const hints = [-5, 0, 999, 1_000, 2_500, 60_000, 60_001, Number.POSITIVE_INFINITY, Number.NaN];
  assert.deepEqual(hints.map(clampRetryAfterMs), [1e3, 1e3, 1e3, 1e3, 2_500, 6e4, 6e4, 6e4, 1e3]);
});
