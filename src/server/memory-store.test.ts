import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { kinds, type SpecInit } from "./kinds.ts";
import { MemoryStore } from "./memory-store.ts";
import { StoreError, type StoreErrorCode } from "./store.ts";

const region = "us-east-1.aws";
const deployment = (id: string, more: SpecInit<"deployment"> = {}) =>
  kinds.deployment.createSpec({ deploymentId: id, k8sName: `app-${id}`, k8sNamespace: "one", ...more });
const sentinel = (id: string) => kinds.sentinel.createSpec({ sentinelId: id, k8sName: `app-${id}` });
const policy = (id: string, k8sNamespace: string) =>
  kinds.policy.createSpec({ ciliumNetworkPolicyId: id, k8sName: "rule", k8sNamespace });
const hasCode = (code: StoreErrorCode) => (error: unknown) =>
  error instanceof StoreError && error.code === code;

let store = new MemoryStore();

beforeEach(async () => {
  store = new MemoryStore();
  await store.registerRegion(region);
});

test("the first change has version 1, and each later one the next, over all kinds", async () => {
  assert.equal(await store.put(region, "deployment", deployment("a")), 1n);
  assert.equal(await store.put(region, "sentinel", sentinel("a")), 2n);
  assert.equal(await store.stop(region, "sentinel", "a"), 3n);
  const edited = await store.edit(region, "deployment", "a", () => deployment("a", { replicas: 9 }));
  assert.equal(edited, 4n);
  assert.equal((await store.row(region, "deployment", "a"))?.spec.replicas, 9);
  await store.registerRegion("other");
  assert.equal(await store.put("other", "deployment", deployment("a")), 1n);
});

test("registering a region again keeps what is there", async () => {
  await store.put(region, "deployment", deployment("a"));
  await store.registerRegion(region);
  assert.equal((await store.rows(region, "deployment")).length, 1);
  assert.deepEqual(await store.regions(), [region]);
});

test("a region that nobody registered is refused everywhere", async () => {
  const calls = [
    store.put("x", "deployment", deployment("a")),
    store.stop("x", "deployment", "a"),
    store.changesSince("x", "deployment", 0n, 1),
    store.waitForChange("x", 0n, new AbortController().signal),
    store.reportHeartbeat("x", 0),
    store.deploymentReport("x", "a"),
  ];
  for (const call of calls) await assert.rejects(call, hasCode("unknown_region"));
});

test("a name belongs to one row of its kind, also after that was stopped, until it is removed", async () => {
  await store.put(region, "deployment", deployment("a", { k8sName: "same" }));
  const second = deployment("b", { k8sName: "same", k8sNamespace: "two" });
  await assert.rejects(store.put(region, "deployment", second), hasCode("name_taken"));
  await store.stop(region, "deployment", "a");
  await assert.rejects(store.put(region, "deployment", second), hasCode("name_taken"));
  await store.remove(region, "deployment", "a");
  assert.equal(await store.put(region, "deployment", second), 3n);
});

test("policies may share a name in different namespaces", async () => {
  await store.put(region, "policy", policy("a", "one"));
  await store.put(region, "policy", policy("b", "two"));
  await assert.rejects(store.put(region, "policy", policy("c", "two")), hasCode("name_taken"));
});

test("a row keeps its name and its id, and needs both", async () => {
  await store.put(region, "deployment", deployment("a"));
  const renamed = deployment("a", { k8sName: "new" });
  await assert.rejects(store.put(region, "deployment", renamed), hasCode("name_changed"));
  const withOtherId = store.edit(region, "deployment", "a", () => deployment("b"));
  await assert.rejects(withOtherId, hasCode("incomplete"));
  await assert.rejects(store.put(region, "deployment", deployment("")), hasCode("incomplete"));
  const nameless = deployment("c", { k8sName: "" });
  await assert.rejects(store.put(region, "deployment", nameless), hasCode("incomplete"));
  const { rows, counter } = await store.changesSince(region, "deployment", 0n, 10);
  assert.deepEqual([rows.length, counter], [1, 1n], "a refused change changes nothing");
});

test("what was given to the store can be changed afterwards without harm", async () => {
  const init = { deploymentId: "a", k8sName: "app", command: ["run"] };
  await store.put(region, "deployment", kinds.deployment.createSpec(init));
  init.command.push("away");
  assert.deepEqual((await store.row(region, "deployment", "a"))?.spec.command, ["run"]);
});

test("removing a row is silent and takes its report with it", async () => {
  await store.put(region, "deployment", deployment("a"));
  await store.reportDeployment(region, "app-a", { exists: true, instances: [], atMs: 1 });
  assert.equal(await store.remove(region, "deployment", "a"), true);
  assert.equal(await store.remove(region, "deployment", "a"), false);
  assert.equal((await store.changesSince(region, "deployment", 0n, 10)).counter, 1n);
  assert.equal(await store.deploymentReport(region, "a"), undefined);
  assert.equal(await store.stop(region, "deployment", "a"), undefined);
});

test("a wait ends with the next change of any kind, and at once when that was missed", async () => {
  const { signal } = new AbortController();
  const waits = [store.waitForChange(region, 0n, signal), store.waitForChange(region, 0n, signal)];
  await store.put(region, "policy", policy("a", "one"));
  await Promise.all(waits);
  await store.waitForChange(region, 0n, signal);
  assert.equal(store.waitingCount(region), 0);
});

test("a wait ends with its signal and is forgotten", async () => {
  const cancelled = new AbortController();
  const wait = store.waitForChange(region, 0n, cancelled.signal);
  assert.equal(store.waitingCount(region), 1);
  cancelled.abort(new Error("enough"));
  await assert.rejects(wait, /enough/);
  assert.equal(store.waitingCount(region), 0);
});

test("a cleared region is known, empty, and counts from the beginning", async () => {
  await store.put(region, "deployment", deployment("a"));
  await store.reportHeartbeat(region, 5);
  const wait = store.waitForChange(region, 1n, new AbortController().signal);
  store.clear(region);
  await wait;
  assert.deepEqual(await store.changesSince(region, "deployment", 0n, 10), { rows: [], counter: 0n });
  assert.deepEqual(await store.agents(), [{ region }]);
  assert.equal(await store.put(region, "deployment", deployment("b")), 1n);
});
