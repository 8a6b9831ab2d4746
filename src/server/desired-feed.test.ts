import assert from "node:assert/strict";
import { test } from "node:test";
import type { KindName } from "../kinds/kinds.ts";
import { desiredFeed } from "./desired-feed.ts";
import { createSpec } from "./kind-messages.ts";
import { MemoryStore } from "./memory-store.ts";

const region = "local.dev";
const author = { by: "test", atMs: 0 };
const { signal } = new AbortController();
const bytesMax = 8 * 1024 * 1024;

class CountingStore extends MemoryStore {
  reads = 0;

  override changesSince<K extends KindName>(name: string, kind: K, cursor: bigint, limit: number) {
    this.reads += 1;
    return super.changesSince(name, kind, cursor, limit);
  }
}

async function storeWith(count: number): Promise<CountingStore> {
  const store = new CountingStore();
  await store.registerRegion(region);
  for (let number = 1; number <= count; number++)
    await store.put(region, "sentinel", sentinel(number), author);
  return store;
}

const sentinel = (number: number, replicas = 1) =>
  createSpec("sentinel", { sentinelId: `s_${number}`, k8sName: `gate-${number}`, replicas });

test("rows are read a hundred at a time, and only when those before were taken", async () => {
  const store = await storeWith(250);
  const feed = desiredFeed(store, "sentinel", region, 0n, bytesMax, signal);
  for (let version = 1n; version <= 250n; version++) {
    assert.equal((await feed.next()).value.version, version);
    assert.equal(store.reads, Math.ceil(Number(version) / 100));
  }
});

test("a row that changes before its batch is read is sent once, in its newest state", async () => {
  const store = await storeWith(101);
  const feed = desiredFeed(store, "sentinel", region, 0n, bytesMax, signal);
  await feed.next();
  await store.put(region, "sentinel", sentinel(101, 7), author);
  const versions: bigint[] = [];
  while (versions.at(-1) !== 102n) versions.push((await feed.next()).value.version);
  assert.deepEqual(versions, [...Array.from({ length: 99 }, (_, index) => BigInt(index + 2)), 102n]);
});

test("a whole batch of unreadable rows does not block the rows after it", async () => {
  const store = await storeWith(0);
  for (let number = 1; number <= 150; number++) {
    store.insert(region, "sentinel", { id: `s_${number}`, spec: sentinel(number), desired: "unreadable" });
  }
  await store.put(region, "sentinel", sentinel(151), author);
  const feed = desiredFeed(store, "sentinel", region, 0n, bytesMax, signal);
  for (let version = 1n; version <= 150n; version++) {
    const { value } = await feed.next();
    assert.deepEqual([value.version, value.state.case], [version, undefined]);
  }
  assert.equal((await feed.next()).value.state.case, "apply");
});

test("changes of other kinds do not end the wait, and do not make it spin", async () => {
  const store = await storeWith(0);
  const feed = desiredFeed(store, "deployment", region, 0n, bytesMax, signal);
  const first = feed.next();
  for (let number = 1; number <= 3; number++) await store.put(region, "sentinel", sentinel(number), author);
  const readsBefore = store.reads;
  assert.ok(readsBefore <= 5, `${readsBefore} reads for 3 changes`);
  await store.put(
    region,
    "deployment",
    createSpec("deployment", { deploymentId: "d", k8sName: "app" }),
    author,
  );
  assert.equal((await first).value.version, 4n);
});
