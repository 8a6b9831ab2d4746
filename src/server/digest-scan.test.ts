import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { createQuietLog } from "../../test/support/quiet-log.ts";
import { scanDigests } from "./digest-scan.ts";
import { StoreError } from "./store.ts";

test("every region is verified, one after the other, and wrong digests are counted", async () => {
  const clock = new FakeClock();
  const verified: string[] = [];
  let wrong = 0;
  const store = {
    regions: async () => ["a.test", "b.test", "c.test"],
    async verifyDigests(region: string) {
      verified.push(region);
      return region === "b.test" ? (["deployment", "policy"] as const) : [];
    },
  };
  const onWrong = (count: number) => {
    wrong += count;
  };
  const scan = scanDigests({ store, clock, log: createQuietLog(), onWrong }, new AbortController().signal);
  for (let second = 0; second < 3; second++) {
    assert.equal(verified.length, second);
    await clock.advance(1_000);
  }
  await scan;
  assert.deepEqual([verified, wrong], [["a.test", "b.test", "c.test"], 2]);
});

test("a region that cannot be verified does not keep the others from it, unless the database is down", async () => {
  for (const [failing, expected] of [
    [
      ["a.test", "c.test"],
      ["a.test", "b.test", "c.test", "d.test"],
    ],
    [
      ["a.test", "b.test", "c.test"],
      ["a.test", "b.test", "c.test"],
    ],
  ] as const) {
    const clock = new FakeClock();
    const verified: string[] = [];
    const store = {
      regions: async () => ["a.test", "b.test", "c.test", "d.test"],
      async verifyDigests(region: string) {
        verified.push(region);
        if ((failing as readonly string[]).includes(region)) throw new StoreError("unavailable", "too slow");
        return [];
      },
    };
    const scan = scanDigests(
      { store, clock, log: createQuietLog(), onWrong: () => assert.fail("none is wrong") },
      new AbortController().signal,
    );
    const ended = expected.length === 4 ? scan : assert.rejects(scan, /too slow/);
    for (let second = 0; second < 4; second++) await clock.advance(1_000);
    await ended;
    assert.deepEqual(verified, expected);
  }
});
