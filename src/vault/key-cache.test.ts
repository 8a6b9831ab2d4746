import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { KeyCache } from "./key-cache.ts";

const { signal } = new AbortController();
const options = { entriesMax: 2, ageMaxMs: 1_000, loadTimeoutMs: 100 };

test("the number of entries is limited, and the least recently used is dropped first", async () => {
  const cache = new KeyCache<string>(options, new FakeClock());
  for (const name of ["a", "b"]) await cache.get(name, async () => name, signal);
  assert.equal(cache.peek("a"), "a");
  await cache.get("c", async () => "c", signal);
  assert.deepEqual(
    ["a", "b", "c"].map((name) => cache.peek(name)),
    ["a", undefined, "c"],
  );
});

test("an entry expires after its time, however often it is used", async () => {
  const clock = new FakeClock();
  const cache = new KeyCache<string>(options, clock);
  await cache.get("a", async () => "first", signal);
  await clock.advance(999);
  assert.equal(cache.peek("a"), "first");
  await clock.advance(1);
  assert.equal(await cache.get("a", async () => "second", signal), "second");
});

test("an unused entry expires too, and leaves no timer", async () => {
  const clock = new FakeClock();
  const cache = new KeyCache<string>(options, clock);
  await cache.get("a", async () => "a", signal);
  await clock.advance(500);
  await cache.get("b", async () => "b", signal);
  cache.forget("b");
  await cache.get("b", async () => "newer", signal);
  await clock.advance(500);
  assert.equal(cache.size, 1);
  await clock.advance(500);
  assert.deepEqual([cache.size, clock.timerCount], [0, 0]);
});

test("neither a failure nor an absence is cached", async () => {
  const cache = new KeyCache<string>(options, new FakeClock());
  await assert.rejects(
    cache.get("a", () => Promise.reject(new Error("down")), signal),
    /down/,
  );
  assert.equal(await cache.get("a", async () => undefined, signal), undefined);
  assert.equal(await cache.get("a", async () => "there", signal), "there");
});

test("closing aborts loads, and drops their late results", async () => {
  const clock = new FakeClock();
  const cache = new KeyCache<string>(options, clock);
  await cache.get("a", async () => "a", signal);
  const reason = new Error("closed");
  const loading = cache.get("b", () => new Promise(() => undefined), signal);
  cache.close(reason);
  await assert.rejects(loading, reason);
  assert.equal(cache.peek("a"), undefined);
  await assert.rejects(
    cache.get("c", async () => "c", signal),
    reason,
  );
  assert.equal(clock.timerCount, 0);
});
