import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { RateLimit } from "./rate-limit.ts";

describe("RateLimit", () => {
  test("allows a burst, then the configured rate, for each key separately", async () => {
    const clock = new FakeClock();
    const limit = new RateLimit({ burst: 2, perSecond: 1, keysMax: 10 }, { clock });
    const take = (count: number) => Array.from({ length: count }, () => limit.take("a"));
    assert.deepEqual(take(4), [true, true, false, false]);
    assert.equal(limit.take("b"), true);
    await clock.advance(1_000);
    assert.deepEqual(take(3), [true, false, false]);
    await clock.advance(3_600_000);
    assert.deepEqual(take(3), [true, true, false]);
  });

  test("the table keeps its size for any number of keys, and keeps the keys in use", () => {
    const limit = new RateLimit({ burst: 1, perSecond: 0, keysMax: 3 }, { clock: new FakeClock() });
    limit.take("kept");
    for (let index = 0; index < 100; index++) {
      limit.take(`stranger ${index}`);
      assert.equal(limit.take("kept"), false);
      assert.ok(limit.size <= 3);
    }
  });
});
