import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { createQuietLog } from "../../test/support/quiet-log.ts";
import { scanDigests } from "./digest-scan.ts";

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
