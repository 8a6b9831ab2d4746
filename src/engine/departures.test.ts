import assert from "node:assert/strict";
import { test } from "node:test";
import type { ConfigMap } from "kubernetes-types/core/v1.js";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { createSeededRandom } from "../concurrency/random.ts";
import { KubeApiError } from "../kube/errors.ts";
import { type CacheChange, ObjectCache } from "../kube/object-cache.ts";
import { configMaps } from "../kube/resources.ts";
import { Departures } from "./departures.ts";

const key = "default/one";

function configMap(resourceVersion: string, value: string, uid = "u1"): ConfigMap {
  return { metadata: { namespace: "default", name: "one", uid, resourceVersion }, data: { value } };
}

/** `answers`: what the server says to each look-up in turn; the last one is repeated. */
function start(...answers: readonly (ConfigMap | undefined | KubeApiError)[]) {
  const clock = new FakeClock();
  const stopping = new AbortController();
  const changes: string[] = [];
  let lookUps = 0;
  const cache = new ObjectCache<ConfigMap, string>({
    project: ({ data }) => data?.["value"] ?? "",
    mayLive: (entry) => {
      departures.note(entry);
      return true;
    },
  });
  const api = {
    async get() {
      const answer = answers[Math.min(lookUps, answers.length - 1)];
      lookUps += 1;
      if (answer instanceof KubeApiError) throw answer;
      return answer as never;
    },
  };
  const deps = { api, clock, random: createSeededRandom(1), onError: assert.fail };
  const departures = new Departures(configMaps, cache, deps);
  cache.replace([cache.entryOf(configMap("1", "first"))], "1");
  cache.subscribe((change: CacheChange<string>) => changes.push(change.kind));
  const done = departures.run(stopping.signal);
  return {
    cache,
    clock,
    changes,
    departures,
    vanish: () => cache.remove(cache.entryOf(configMap("2", "first"))),
    lookUps: () => lookUps,
    stop: async () => {
      stopping.abort();
      await done;
    },
  };
}

test("an object that the watch no longer shows is gone once a look-up does not find it", async () => {
  const world = start(undefined);
  world.vanish();
  assert.equal(world.cache.get(key)?.value, "first");
  assert.deepEqual(world.changes, []);
  await world.clock.settle();
  assert.equal(world.cache.get(key), undefined);
  assert.deepEqual(world.changes, ["deleted"]);
  await world.stop();
});

test("another object under its name means that it is gone", async () => {
  const world = start(configMap("3", "other", "u2"));
  world.vanish();
  await world.clock.settle();
  assert.equal(world.cache.get(key), undefined);
  await world.stop();
});

test("an object that a look-up finds stays, as it is now, and is looked up until the watch shows it again", async () => {
  const world = start(configMap("2", "stray"), configMap("4", "changed"), configMap("4", "changed"));
  world.vanish();
  await world.clock.settle();
  assert.equal(world.cache.get(key)?.value, "stray");
  assert.deepEqual(world.changes, ["changed"]);
  await world.clock.advance(30_000);
  assert.equal(world.cache.get(key)?.value, "changed");
  assert.deepEqual(world.changes, ["changed", "changed"]);
  // The watch shows the same state that the look-up has seen.
  world.cache.put(world.cache.entryOf(configMap("4", "changed")));
  assert.equal(world.cache.getMissing(key), undefined);
  await world.clock.advance(300_000);
  assert.equal(world.lookUps(), 2);
  await world.stop();
});

test("an object that a look-up found, and that is deleted later, is not kept", async () => {
  const world = start(configMap("2", "stray"), undefined);
  world.vanish();
  await world.clock.advance(30_000);
  assert.equal(world.cache.get(key), undefined);
  await world.stop();
});

test("while nothing can be looked up, nothing is concluded", async () => {
  const unreachable = new KubeApiError("network", "connection refused");
  const world = start(unreachable, unreachable, unreachable, undefined);
  world.vanish();
  await world.clock.settle();
  assert.equal(world.cache.get(key)?.value, "first");
  await world.clock.advance(60_000);
  assert.equal(world.cache.get(key), undefined);
  assert.equal(world.lookUps(), 4);
  await world.stop();
});

test("without its kind an object is gone", async () => {
  const world = start(new KubeApiError("refused", "no such kind", { status: 404 }));
  world.vanish();
  await world.clock.settle();
  assert.equal(world.cache.get(key), undefined);
  await world.stop();
});

test("what a new list lacks is looked up, too", async () => {
  const world = start(configMap("2", "stray"));
  world.cache.replace([], "5");
  assert.equal(world.cache.get(key)?.value, "first");
  await world.clock.settle();
  assert.equal(world.cache.get(key)?.value, "stray");
  await world.stop();
});

test("an object that krane deletes is not looked up, whichever comes first: the answer or the event", async () => {
  for (const isEventFirst of [true, false]) {
    const world = start(undefined);
    const send = async () => {
      if (isEventFirst) world.vanish();
      await world.clock.settle();
      return { kind: "deleted" } as const;
    };
    const onGone = () => world.cache.settleMissing(key, "u1", undefined);
    await world.departures.whileLeaving({ key, uid: "u1" }, send, onGone);
    assert.equal(world.lookUps(), 0);
    assert.equal(world.cache.get(key) === undefined, isEventFirst);
    await world.stop();
  }
});

test("an object whose deletion failed, and that the watch no longer shows, is looked up", async () => {
  const world = start(undefined);
  const send = async () => {
    world.vanish();
    throw new KubeApiError("network", "connection reset");
  };
  await assert.rejects(world.departures.whileLeaving({ key, uid: "u1" }, send, assert.fail));
  await world.clock.settle();
  assert.equal(world.cache.get(key), undefined);
  await world.stop();
});

test("an old event does not bring back an object that a look-up found gone", async () => {
  const world = start(undefined);
  world.vanish();
  await world.clock.settle();
  world.cache.put(world.cache.entryOf(configMap("1", "first")));
  assert.equal(world.cache.get(key), undefined);
  await world.stop();
});
