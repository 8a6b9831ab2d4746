// What only the store in memory has: what tests and `krane dev` do to it from outside. What
// every store does is in test/store.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createSpec } from "./kind-messages.ts";
import { MemoryStore } from "./memory-store.ts";
import { StoreError } from "./store.ts";

const region = "us-east-1.aws";
const author = { by: "test", atMs: 0 };
const deployment = (id: string) =>
  createSpec("deployment", { deploymentId: id, k8sName: `app-${id}`, k8sNamespace: "one" });

test("a cleared region is known, empty, and counts from the beginning", async () => {
  const store = new MemoryStore();
  await store.registerRegion(region);
  await store.put(region, "deployment", deployment("a"), author);
  await store.reportHeartbeat(region, 5);
  const wait = store.waitForChange(region, 1n, new AbortController().signal);
  store.clear(region);
  await wait;
  const empty = { rows: [], counter: 0n, isFull: false };
  assert.deepEqual(await store.changesSince(region, "deployment", 0n, 10), empty);
  assert.deepEqual(await store.agents(), [
    { region, newestVersion: 0n, newestOfKind: { deployment: 0n, sentinel: 0n, policy: 0n, route: 0n } },
  ]);
  assert.deepEqual(await store.history(region, { limit: 10 }), []);
  assert.equal(await store.put(region, "deployment", deployment("b"), author), 1n);
});

test("a row of a newer server can be replaced as a whole, and not in part", async () => {
  const store = new MemoryStore();
  await store.registerRegion(region);
  store.insert(region, "deployment", { id: "a", spec: deployment("a"), desired: "unreadable" });
  const isUnreadable = (error: unknown) => error instanceof StoreError && error.code === "unreadable";
  await assert.rejects(
    store.edit(region, "deployment", "a", (spec) => spec, author),
    isUnreadable,
  );
  await assert.rejects(store.stop(region, "deployment", "a", author), isUnreadable);
  await store.put(region, "deployment", deployment("a"), author);
  assert.equal((await store.row(region, "deployment", "a"))?.desired, "running");
});
