import assert from "node:assert/strict";
import { test } from "node:test";
import type { Pod } from "kubernetes-types/core/v1.js";
import { ObjectCache } from "./object-cache.ts";

const never = new AbortController().signal;

function pod(
  name: string,
  resourceVersion: string,
  labels: Record<string, string> = {},
  uid = `uid-${name}`,
): Pod {
  return { metadata: { name, namespace: "default", uid, resourceVersion, labels } };
}

function podCache() {
  return new ObjectCache({
    project: (object: Pod) => ({ app: object.metadata?.labels?.["app"] }),
    indexes: { app: (value) => value.app },
  });
}

function put(cache: ReturnType<typeof podCache>, ...objects: Pod[]): void {
  for (const object of objects) cache.put(cache.entryOf(object));
}

const keysOf = (cache: ReturnType<typeof podCache>, app: string) =>
  cache.byIndex("app", app).map((entry) => entry.key);

test("only the projection is kept", () => {
  const cache = podCache();
  put(cache, pod("a", "1", { app: "x" }));
  assert.deepEqual(cache.get("default/a"), {
    key: "default/a",
    uid: "uid-a",
    resourceVersion: "1",
    value: { app: "x" },
  });
});

test("an index follows changes, recreations, deletions and new lists", () => {
  const cache = podCache();
  put(cache, pod("a", "1", { app: "x" }), pod("b", "2", { app: "x" }), pod("c", "3"));
  assert.deepEqual(keysOf(cache, "x"), ["default/a", "default/b"]);
  put(cache, pod("a", "4", { app: "y" }));
  put(cache, pod("b", "5", { app: "y" }, "another"));
  assert.deepEqual([keysOf(cache, "x"), keysOf(cache, "y")], [[], ["default/a", "default/b"]]);
  cache.remove(cache.entryOf(pod("a", "6")));
  assert.deepEqual(keysOf(cache, "y"), ["default/b"]);
  cache.replace([cache.entryOf(pod("c", "7", { app: "z" }))], "8");
  assert.deepEqual([keysOf(cache, "y"), keysOf(cache, "z")], [[], ["default/c"]]);
});

test("an index follows changes of a large group", () => {
  const cache = podCache();
  for (let count = 1; count <= 40; count++) put(cache, pod(`p${count}`, String(count), { app: "x" }));
  assert.equal(keysOf(cache, "x").length, 40);
  for (let count = 1; count <= 40; count++)
    cache.remove(cache.entryOf(pod(`p${count}`, String(100 + count))));
  assert.deepEqual(keysOf(cache, "x"), []);
});

test("the revision changes with the set of objects and their standing, and with nothing else", () => {
  const cache = new ObjectCache({
    project: ({ metadata }: Pod) => ({ app: metadata?.labels?.["app"], tier: metadata?.labels?.["tier"] }),
    standing: ({ tier }) => tier,
  });
  const revisions: number[] = [];
  const put = (object: Pod) => {
    cache.put(cache.entryOf(object));
    revisions.push(cache.revision);
  };
  put(pod("a", "1", { app: "x", tier: "low" }));
  put(pod("a", "2", { app: "y", tier: "low" }));
  put(pod("a", "3", { app: "y", tier: "high" }));
  put(pod("a", "4", { app: "y", tier: "high" }, "another"));
  cache.remove(cache.entryOf(pod("b", "5")));
  revisions.push(cache.revision);
  cache.remove(cache.entryOf(pod("a", "6", {}, "another")));
  revisions.push(cache.revision);
  assert.deepEqual(revisions, [1, 1, 2, 3, 3, 4]);
});

test("a hash is stored if the cache has a hash function", () => {
  const cache = new ObjectCache({
    project: () => undefined,
    hash: (object: Pod) => `#${object.metadata?.name}`,
  });
  assert.equal(cache.entryOf(pod("a", "1")).hash, "#a");
});

test("a listener sees the complete new list from the first transition on", () => {
  const cache = podCache();
  put(cache, pod("a", "1"), pod("b", "2"));
  const sizes: number[] = [];
  cache.subscribe(() => sizes.push(cache.size));
  cache.replace(
    [pod("c", "3"), pod("d", "4"), pod("b", "2")].map((object) => cache.entryOf(object)),
    "5",
  );
  assert.deepEqual(sizes, [3, 3, 3]);
});

test("a listener that unsubscribed gets no more changes", () => {
  const cache = podCache();
  const seen: string[] = [];
  const stop = cache.subscribe((change) => seen.push(change.key));
  put(cache, pod("a", "1"));
  stop();
  put(cache, pod("b", "2"));
  assert.deepEqual(seen, ["default/a"]);
});

test("a writer waits until its own write was seen, by an event, a bookmark or a list", async () => {
  const advances: ((cache: ReturnType<typeof podCache>) => void)[] = [
    (cache) => put(cache, pod("a", "10")),
    (cache) => cache.remove(cache.entryOf(pod("a", "11"))),
    (cache) => cache.advance("10"),
    (cache) => cache.replace([], "10"),
  ];
  for (const advance of advances) {
    const cache = podCache();
    cache.replace([], "5");
    let seen = false;
    const waiting = cache.waitFor("10", never).then(() => {
      seen = true;
    });
    put(cache, pod("b", "9"));
    await Promise.resolve();
    await Promise.resolve();
    assert.equal(seen, false);
    advance(cache);
    await waiting;
  }
});

test("waiting for a version already reached resolves at once; an abort ends the wait", async () => {
  const cache = podCache();
  cache.replace([], "12345678901234567890");
  await cache.waitFor("12345678901234567889", never);
  const stop = new AbortController();
  const waiting = cache.waitFor("12345678901234567891", stop.signal);
  const reason = new Error("enough");
  stop.abort(reason);
  await assert.rejects(waiting, reason);
  await assert.rejects(cache.waitFor("1", stop.signal), reason);
});

test("whenSynced resolves when the first state is complete, or rejects on abort", async () => {
  const cache = podCache();
  const stop = new AbortController();
  const given = cache.whenSynced(stop.signal);
  const synced = cache.whenSynced(never);
  stop.abort(new Error("enough"));
  await assert.rejects(given, /enough/);
  assert.equal(cache.synced, false);
  cache.replace([], "1");
  await synced;
  await cache.whenSynced(never);
});

test("after thousands of deletions an older event still brings nothing back", () => {
  const cache = podCache();
  cache.replace([], "1");
  put(cache, pod("first", "2"));
  cache.remove(cache.entryOf(pod("first", "3")));
  for (let version = 4; version < 5_000; version += 2) {
    put(cache, pod(`p${version}`, String(version)));
    cache.remove(cache.entryOf(pod(`p${version}`, String(version + 1))));
  }
  put(cache, pod("first", "2"));
  assert.equal(cache.size, 0);
});
