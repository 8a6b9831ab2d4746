import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { fingerprint, ScriptedKube, type ScriptedObject } from "../../test/support/scripted-kube.ts";
import { createSeededRandom } from "../concurrency/random.ts";
import { createKubeApi } from "./client.ts";
import type { KubeApiError } from "./errors.ts";
import { ObjectCache } from "./object-cache.ts";
import { Reflector } from "./reflector.ts";
import type { ResourceKind } from "./types.ts";

const things: ResourceKind<ScriptedObject> = {
  group: "",
  version: "v1",
  kind: "Thing",
  plural: "things",
  namespaced: true,
};

const minute = 60_000;

async function started(prepare: (server: ScriptedKube) => void = () => undefined) {
  const clock = new FakeClock();
  const server = new ScriptedKube();
  prepare(server);
  const cache = new ObjectCache<ScriptedObject, string>({ project: fingerprint });
  const seen: string[] = [];
  cache.subscribe((change) => seen.push(`${change.kind} ${change.key}`));
  const errors: KubeApiError[] = [];
  const stop = new AbortController();
  const reflector = new Reflector(
    { kind: things, cache, onError: (error) => errors.push(error) },
    { api: createKubeApi(server), clock, random: createSeededRandom(1) },
  );
  const done = reflector.run(stop.signal);
  await clock.settle();
  return {
    clock,
    server,
    cache,
    seen,
    errors,
    reflector,
    cached: () => Object.fromEntries([...cache.all()].map((entry) => [entry.key, entry.value]).sort()),
    lists: () => server.requests.filter((request) => request.query?.["watch"] === undefined).length,
    lastQuery: () => server.requests.at(-1)?.query ?? {},
    async end() {
      stop.abort();
      await done;
      assert.equal(clock.timerCount, 0);
      assert.equal(server.watchCount, 0);
    },
  };
}

test("the first state and every change after it reach the cache", async () => {
  const world = await started((server) => server.set("a", 1));
  assert.equal(world.reflector.state().synced, true);
  world.server.set("b", 1);
  world.server.set("a", 2);
  world.server.delete("b");
  await world.clock.settle();
  assert.deepEqual(world.cached(), world.server.snapshot());
  assert.deepEqual(world.seen, [
    "added default/a",
    "added default/b",
    "changed default/a",
    "deleted default/b",
  ]);
  await world.end();
});

test("a watch that the server ends resumes at once, without a list", async () => {
  const world = await started((server) => server.set("a", 1));
  await world.clock.advance(minute);
  const at = world.server.resourceVersion;
  world.server.endWatches();
  world.server.set("b", 1);
  await world.clock.settle();
  assert.deepEqual(world.cached(), world.server.snapshot());
  assert.equal(world.lastQuery()["resourceVersion"], at);
  assert.equal(world.errors.length, 0);
  await world.end();
});

test("410 as an event or as a status leads to a relist, and objects that vanished meanwhile are deleted", async (t) => {
  for (const form of ["event", "status"] as const) {
    await t.test(form, async () => {
      const world = await started((server) => {
        server.set("a", 1);
        server.set("gone", 1);
      });
      world.server.muteWatches();
      world.server.delete("gone");
      world.server.set("new", 1);
      world.server.compact();
      if (form === "status") {
        world.server.streamFaults.push({ kind: "status", status: 410, reason: "Expired" });
      }
      world.server.endWatches();
      await world.clock.advance(minute);
      assert.deepEqual(world.cached(), world.server.snapshot());
      assert.deepEqual(world.seen.slice(2).sort(), ["added default/new", "deleted default/gone"]);
      assert.equal(
        world.errors.some((error) => error.isExpired),
        true,
      );
      await world.end();
    });
  }
});

test("after five failed attempts in a row the watch recovers", async () => {
  const world = await started((server) => server.set("a", 1));
  world.server.streamFaults.push(
    { kind: "network" },
    { kind: "status", status: 500 },
    { kind: "status", status: 403, reason: "Forbidden" },
    { kind: "network" },
    { kind: "status", status: 429 },
  );
  world.server.breakWatches();
  world.server.set("b", 1);
  await world.clock.advance(2 * minute);
  assert.deepEqual(world.cached(), world.server.snapshot());
  assert.equal(world.lists(), 0);
  await world.end();
});

test("a silent watch is dropped, and no change during the silence is missed", async () => {
  const world = await started((server) => server.set("a", 1));
  world.server.muteWatches();
  world.server.set("a", 2);
  world.server.set("b", 1);
  await world.clock.advance(89_000);
  assert.notDeepEqual(world.cached(), world.server.snapshot());
  await world.clock.advance(10_000);
  assert.deepEqual(world.cached(), world.server.snapshot());
  assert.deepEqual(
    world.errors.map((error) => error.code),
    ["timeout"],
  );
  await world.end();
});

test("repeated, old and reordered events have no effect", async () => {
  const world = await started((server) => server.set("a", 1));
  world.server.set("a", 2);
  world.server.set("a", 3);
  world.server.repeat(3);
  world.server.swapped(
    () => world.server.set("b", 1),
    () => world.server.delete("b"),
  );
  world.server.swapped(
    () => world.server.set("c", 1),
    () => world.server.set("c", 2),
  );
  world.server.swapped(
    () => world.server.delete("c"),
    () => world.server.set("c", 3),
  );
  await world.clock.settle();
  assert.deepEqual(world.cached(), world.server.snapshot());
  assert.deepEqual(world.seen, [
    "added default/a",
    "changed default/a",
    "changed default/a",
    "added default/c",
    "deleted default/c",
    "added default/c",
  ]);
  await world.end();
});

test("an object that was recreated under its name is seen as deleted and added", async () => {
  const world = await started((server) => server.set("a", 1));
  world.server.muteWatches();
  world.server.delete("a");
  world.server.set("a", 1);
  world.server.compact();
  world.server.endWatches();
  await world.clock.advance(minute);
  assert.deepEqual(world.seen, ["added default/a", "deleted default/a", "added default/a"]);
  assert.deepEqual(world.cached(), world.server.snapshot());
  await world.end();
});

test("after ten minutes of bookmarks a watch resumes at the last one, although older history is compacted", async () => {
  const world = await started((server) => server.set("a", 1));
  for (let passed = 0; passed < 10; passed++) {
    await world.clock.advance(minute);
    world.server.set("a", passed);
    world.server.bookmark();
  }
  await world.clock.settle();
  world.server.compact();
  world.server.endWatches();
  await world.clock.settle();
  world.server.set("b", 1);
  await world.clock.settle();
  assert.deepEqual(world.cached(), world.server.snapshot());
  assert.equal(world.errors.length, 0);
  await world.end();
});

test("a server without sendInitialEvents is listed in pages, and not asked for it again", async (t) => {
  for (const how of ["refused", "ignored"] as const) {
    await t.test(how, async () => {
      const world = await started((server) => {
        server.supportsInitialEvents = how;
        server.pageSize = 2;
        for (const name of ["a", "b", "c", "d", "e"]) server.set(name, 1);
      });
      world.server.bookmark();
      await world.clock.settle();
      assert.deepEqual(world.cached(), world.server.snapshot());
      assert.equal(world.lists(), 3);
      world.server.muteWatches();
      world.server.set("f", 1);
      world.server.compact();
      world.server.endWatches();
      await world.clock.advance(minute);
      assert.deepEqual(world.cached(), world.server.snapshot());
      assert.equal(world.server.requests.filter((request) => request.query?.["sendInitialEvents"]).length, 1);
      await world.end();
    });
  }
});

test("a list whose continue token expired starts over", async () => {
  const world = await started((server) => {
    server.supportsInitialEvents = "refused";
    server.pageSize = 1;
    server.set("a", 1);
    server.set("b", 1);
    server.sendFaults.push(undefined, { kind: "status", status: 410, reason: "Expired" });
  });
  assert.deepEqual(world.cached(), world.server.snapshot());
  assert.equal(world.lists(), 4);
  await world.end();
});

test("a partial list changes nothing", async () => {
  const world = await started((server) => {
    server.supportsInitialEvents = "refused";
    server.pageSize = 1;
    server.set("a", 1);
    server.set("b", 1);
  });
  world.server.muteWatches();
  world.server.delete("b");
  world.server.set("c", 1);
  world.server.compact();
  world.server.sendFaults.push(undefined, { kind: "network" });
  world.server.endWatches();
  await world.clock.advance(900);
  assert.deepEqual(Object.keys(world.cached()), ["default/a", "default/b"]);
  await world.clock.advance(minute);
  assert.deepEqual(world.cached(), world.server.snapshot());
  await world.end();
});

test("watches that end at once back off", async () => {
  const world = await started();
  for (let count = 0; count < 1_000; count++) world.server.streamFaults.push({ kind: "end-at-once" });
  world.server.endWatches();
  await world.clock.advance(10 * minute);
  assert.ok(world.server.requests.length < 50, `${world.server.requests.length} requests in ten minutes`);
  assert.ok(world.server.requests.length > 20, "the pause never grows above 30 s");
  world.server.streamFaults.length = 0;
  world.server.set("a", 1);
  await world.clock.advance(minute);
  assert.deepEqual(world.cached(), world.server.snapshot());
  await world.end();
});

test("the failures are forgotten after two healthy minutes, not before", async () => {
  const world = await started();
  const failTwice = async () => {
    world.server.streamFaults.push({ kind: "network" }, { kind: "network" });
    world.server.breakWatches();
    await world.clock.advance(10_000);
  };
  const stayHealthy = async (minutes: number) => {
    for (let passed = 0; passed < minutes; passed++) {
      await world.clock.advance(minute);
      world.server.bookmark();
    }
  };
  await failTwice();
  assert.equal(world.reflector.state().failures, 3);
  await stayHealthy(1);
  world.server.breakWatches();
  await world.clock.settle();
  assert.equal(world.reflector.state().failures, 4);
  await world.clock.advance(30_000);
  await stayHealthy(3);
  world.server.breakWatches();
  await world.clock.settle();
  assert.equal(world.reflector.state().failures, 1);
  await world.end();
});

test("a reopened watch clears the error at once, even if silent, and the failures still count", async () => {
  const world = await started();
  world.server.streamFaults.push({ kind: "network" }, { kind: "status", status: 500 });
  world.server.breakWatches();
  await world.clock.settle();
  assert.equal(world.reflector.state().lastError?.error.code, "network");
  await world.clock.advance(10_000);
  assert.equal(world.server.watchCount, 1);
  assert.equal(world.reflector.state().lastError, undefined);
  assert.equal(world.reflector.state().failures, 3);
  world.server.breakWatches();
  await world.clock.settle();
  assert.equal(world.reflector.state().lastError?.error.code, "network");
  assert.equal(world.reflector.state().failures, 4);
  await world.end();
});

test("watches that end right after opening clear the error only while they are open", async () => {
  const world = await started();
  for (let count = 0; count < 100; count++) {
    world.server.streamFaults.push({ kind: "end-at-once" }, { kind: "error-event", status: 500 });
  }
  world.server.endWatches();
  for (let second = 0; second < 300; second++) {
    await world.clock.advance(1_000);
    assert.notEqual(world.reflector.state().lastError, undefined, `after ${second} s`);
  }
  await world.end();
});

test("a stream of the initial state clears the error when it is complete, not when it is opened", async () => {
  const world = await started((server) => server.set("a", 1));
  world.server.muteWatches();
  world.server.set("a", 2);
  world.server.compact();
  world.server.streamFaults.push(undefined, { kind: "silent" });
  world.server.breakWatches();
  await world.clock.advance(10_000);
  assert.equal(world.lastQuery()["sendInitialEvents"], "true");
  assert.equal(world.server.watchCount, 1);
  assert.equal(world.reflector.state().lastError?.error.isExpired, true);
  await world.clock.advance(2 * minute);
  assert.deepEqual(world.cached(), world.server.snapshot());
  assert.equal(world.reflector.state().lastError, undefined);
  await world.end();
});

test("after a list, the error of the watch is shown until the watch is open", async () => {
  const world = await started((server) => {
    server.supportsInitialEvents = "refused";
    server.set("a", 1);
    server.streamFaults.push(undefined, { kind: "status", status: 403, reason: "Forbidden" });
  });
  assert.equal(world.reflector.state().synced, true);
  assert.equal(world.reflector.state().lastError?.error.status, 403);
  await world.clock.advance(1_000);
  assert.equal(world.reflector.state().lastError, undefined);
  await world.end();
});

test("a server that lags is waited for, and its state is accepted if it stays behind", async () => {
  const world = await started((server) => server.set("a", 1));
  world.server.pushRaw({ type: "BOOKMARK", object: { metadata: { resourceVersion: "900" } } });
  await world.clock.settle();
  const tooLarge = {
    kind: "status",
    status: 504,
    reason: "Timeout",
    cause: "ResourceVersionTooLarge",
  } as const;
  for (let count = 0; count < 5; count++) world.server.streamFaults.push(tooLarge);
  world.server.breakWatches();
  world.server.set("b", 1);
  await world.clock.advance(10_000);
  assert.deepEqual(Object.keys(world.cached()), ["default/a"]);
  await world.clock.advance(2 * minute);
  assert.deepEqual(world.cached(), world.server.snapshot());
  await world.end();
});

test("a server restored from a backup is accepted after several old bookmarks", async () => {
  const world = await started((server) => server.set("a", 1));
  world.server.pushRaw({ type: "BOOKMARK", object: { metadata: { resourceVersion: "900" } } });
  await world.clock.settle();
  world.server.lose(() => world.server.set("b", 1));
  for (let passed = 0; passed < 4; passed++) {
    await world.clock.advance(minute);
    world.server.bookmark();
  }
  await world.clock.settle();
  assert.deepEqual(Object.keys(world.cached()), ["default/a"]);
  await world.clock.advance(minute);
  world.server.bookmark();
  await world.clock.advance(minute);
  assert.deepEqual(world.cached(), world.server.snapshot());
  await world.end();
});

test("an event with an untrue, huge version hides its object for ten minutes at most, however busy the cluster is", async () => {
  const { server, clock, cached, end } = await started((one) => one.set("a", 1));
  const metadata = { name: "a", namespace: "default", uid: "uid-1", resourceVersion: "99999999999999999999" };
  server.pushRaw({
    type: "MODIFIED",
    object: { apiVersion: "v1", kind: "Thing", metadata, spec: { value: 9 } },
  });
  await clock.settle();
  server.set("a", 2);
  for (let second = 0; second < 600; second++) {
    server.set("b", second);
    if (second % 60 === 0) server.bookmark();
    await clock.advance(1_000);
  }
  assert.deepEqual(cached(), server.snapshot());
  await end();
});

test("a kind that is not installed is retried until it is", async () => {
  const world = await started((server) => {
    for (let count = 0; count < 10; count++) server.streamFaults.push({ kind: "status", status: 404 });
    server.set("a", 1);
  });
  assert.equal(world.reflector.state().synced, false);
  await world.clock.advance(5 * minute);
  assert.equal(world.reflector.state().synced, true);
  assert.deepEqual(world.cached(), world.server.snapshot());
  await world.end();
});

test("an interrupted stream of the initial state changes nothing", async () => {
  const world = await started((server) => {
    server.set("a", 1);
    server.set("b", 1);
  });
  world.server.supportsInitialEvents = "ignored";
  world.server.compact();
  world.server.set("c", 1);
  world.server.pushRaw({ type: "ERROR", object: { kind: "Status", code: 410, reason: "Expired" } });
  await world.clock.advance(3_000);
  world.server.endWatches();
  await world.clock.settle();
  assert.equal(
    world.seen.some((change) => change.startsWith("deleted")),
    false,
  );
  world.server.supportsInitialEvents = "yes";
  await world.clock.advance(minute);
  assert.deepEqual(world.cached(), world.server.snapshot());
  await world.end();
});

test("a lost event is repaired by the next relist", async () => {
  const world = await started((server) => server.set("a", 1));
  world.server.lose(() => world.server.set("a", 2));
  for (let passed = 0; passed < 70; passed++) {
    world.server.bookmark();
    if (passed % 8 === 7) world.server.endWatches();
    await world.clock.advance(minute);
  }
  assert.deepEqual(world.cached(), world.server.snapshot());
  await world.end();
});

test("stopping during a wait leaves nothing behind", async () => {
  const world = await started((server) => server.streamFaults.push({ kind: "network" }));
  await world.end();
});

test("a listener that throws ends the loop, because it is a bug", async () => {
  const server = new ScriptedKube();
  server.set("a", 1);
  const clock = new FakeClock();
  const cache = new ObjectCache<ScriptedObject, string>({ project: fingerprint });
  cache.subscribe(() => {
    throw new Error("bug");
  });
  const deps = { api: createKubeApi(server), clock, random: createSeededRandom(1) };
  const reflector = new Reflector({ kind: things, cache }, deps);
  await assert.rejects(reflector.run(new AbortController().signal), /bug/);
  assert.equal(clock.timerCount, 0);
  assert.equal(server.watchCount, 0);
});
