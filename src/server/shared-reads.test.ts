import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../test/support/fake-clock.ts";
import type { KindName } from "../kinds/kinds.ts";
import { createSpec } from "./kind-messages.ts";
import { MemoryStore } from "./memory-store.ts";
import { SharedReads } from "./shared-reads.ts";

const region = "local.dev";
const author = { by: "test", atMs: 0 };
const sentinel = (number: number) =>
  createSpec("sentinel", { sentinelId: `s_${number}`, k8sName: `gate-${number}` });

class CountingStore extends MemoryStore {
  reads = 0;
  rowsMax = 100;

  override changesSince<K extends KindName>(name: string, kind: K, cursor: bigint, limit: number) {
    this.reads += 1;
    return super.changesSince(name, kind, cursor, Math.min(limit, this.rowsMax));
  }
}

async function storeWith(count: number) {
  const store = new CountingStore();
  await store.registerRegion(region);
  for (let number = 1; number <= count; number++)
    await store.put(region, "sentinel", sentinel(number), author);
  const clock = new FakeClock();
  return { store, clock, shared: new SharedReads(store, { clock }) };
}

test("concurrent requests for the same rows share one read", async () => {
  const { store, shared } = await storeWith(3);
  const answers = await Promise.all(
    Array.from({ length: 50 }, () => shared.changesSince(region, "sentinel", 1n, 100)),
  );
  assert.equal(store.reads, 1);
  for (const { rows } of answers) assert.equal(rows.length, 2);
});

test("another cursor, kind or limit is another read", async () => {
  const { store, shared } = await storeWith(3);
  await Promise.all([
    shared.changesSince(region, "sentinel", 0n, 100),
    shared.changesSince(region, "sentinel", 1n, 100),
    shared.changesSince(region, "deployment", 1n, 100),
    shared.changesSince(region, "sentinel", 1n, 1),
  ]);
  assert.equal(store.reads, 4);
});

test("a request after a change sees it, unless a whole batch precedes it", async () => {
  const { store, clock, shared } = await storeWith(4);
  assert.equal((await shared.changesSince(region, "sentinel", 0n, 100)).rows.length, 4);
  await store.put(region, "sentinel", sentinel(5), author);
  assert.equal((await shared.changesSince(region, "sentinel", 0n, 100)).rows.length, 5);
  await shared.changesSince(region, "sentinel", 0n, 2);
  await shared.changesSince(region, "sentinel", 0n, 2);
  assert.equal(store.reads, 3, "a whole batch is kept for a moment");
  await clock.advance(1_000);
  await shared.changesSince(region, "sentinel", 0n, 2);
  assert.equal(store.reads, 4);
});

test("a batch that ended early, because its rows are large, is kept as a whole one is", async () => {
  const { store, shared } = await storeWith(4);
  store.rowsMax = 2;
  for (const ids of ["s_1 s_2", "s_1 s_2"]) {
    const { rows } = await shared.changesSince(region, "sentinel", 0n, 100);
    assert.equal(rows.map(({ id }) => id).join(" "), ids);
  }
  assert.equal(store.reads, 1);
});

test("a failed read fails for its waiters, and not for later requests", async () => {
  const { shared, store } = await storeWith(0);
  await assert.rejects(shared.changesSince("nowhere", "sentinel", 0n, 1));
  await assert.rejects(shared.changesSince("nowhere", "sentinel", 0n, 1));
  assert.equal(store.reads, 2);
});
