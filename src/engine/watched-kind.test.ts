import assert from "node:assert/strict";
import { test } from "node:test";
import { createApiServer } from "@krane/kube-apiserver";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { testSeal } from "../../test/support/test-seal.ts";
import { createSeededRandom } from "../concurrency/random.ts";
import { createInProcessTransport } from "../dev/in-process-transport.ts";
import { createKubeApi } from "../kube/client.ts";
import { ciliumNetworkPolicies, configMaps } from "../kube/resources.ts";
import { WatchedKind } from "./watched-kind.ts";

const never = new AbortController().signal;
const ref = { namespace: "default", name: "one" };

async function watched() {
  const clock = new FakeClock();
  const random = createSeededRandom(1);
  const server = createApiServer({ clock, random });
  const api = createKubeApi(createInProcessTransport(server));
  const stopping = new AbortController();
  const deps = { api, clock, random, seal: testSeal, onError: () => undefined };
  const kind = new WatchedKind(
    {
      kind: configMaps,
      selection: { namespace: "default" },
      project: ({ data }) => data?.["value"],
      owned: true,
      required: true,
    },
    deps,
  );
  const done = kind.run(stopping.signal);
  await clock.settle();
  const write = async (value: string) => {
    const manifest = { metadata: ref, data: { value } };
    return (await api.apply(configMaps, manifest, { fieldManager: "krane", force: true }, never)).object;
  };
  const stop = async () => {
    stopping.abort();
    await done;
    server.stop();
  };
  return { clock, api, server, kind, deps, write, stop };
}

test("a write is visible before its watch event arrives, and then the cache takes over", async () => {
  const { clock, kind, write, stop } = await watched();
  const object = await write("one");
  kind.wrote(object);
  assert.equal(kind.cache.get("default/one"), undefined);
  assert.equal(kind.get("default/one")?.value, "one");
  await clock.settle();
  await write("two");
  await clock.settle();
  assert.equal(kind.get("default/one")?.value, "two");
  await stop();
});

test("a write that is recorded after its event does not hide a newer state", async () => {
  const { clock, kind, write, stop } = await watched();
  const old = await write("one");
  await write("two");
  await clock.settle();
  kind.wrote(old);
  assert.equal(kind.get("default/one")?.value, "two");
  await stop();
});

test("a deleted object is gone at once, and a new one with its name is visible", async () => {
  const { clock, api, server, kind, write, stop } = await watched();
  const { metadata } = await write("one");
  await clock.settle();
  server.faults.dropEvents(1);
  await api.delete(configMaps, ref, {}, never);
  await kind.delete(ref, metadata?.uid ?? "", async () => ({ kind: "deleted" }));
  await clock.settle();
  assert.equal(kind.cache.get("default/one")?.value, "one");
  assert.equal(kind.get("default/one"), undefined);
  await write("another");
  await clock.settle();
  assert.equal(kind.get("default/one")?.value, "another");
  await stop();
});

test("a kind that the server does not have is missing, not merely unsynced", async () => {
  const { clock, kind, deps, stop } = await watched();
  assert.equal(kind.isMissing, false);
  const options = { selection: {}, project: () => 0, owned: false, required: false };
  const absent = new WatchedKind({ kind: ciliumNetworkPolicies, ...options }, deps);
  assert.equal(absent.isMissing, false);
  const stopping = new AbortController();
  const done = absent.run(stopping.signal);
  await clock.settle();
  assert.equal(absent.isMissing, true);
  assert.match(absent.status().lastError, /404/);
  stopping.abort();
  await done;
  await stop();
});

test("a watch error is shown until the watch is open again, and no longer", async () => {
  const { clock, server, kind, stop } = await watched();
  const body = { kind: "Status", apiVersion: "v1", code: 500, reason: "InternalError" };
  const heal = server.faults.intercept(() => ({ kind: "whole", status: 500, body }));
  server.faults.closeWatches();
  await clock.advance(10_000);
  assert.equal(kind.status().synced, true);
  assert.match(kind.status().lastError, /500/);
  heal();
  await clock.advance(30_000);
  assert.equal(server.faults.openWatches, 1);
  assert.equal(kind.status().lastError, "");

  // A normal end of the watch soon after does not bring the old error back either.
  const answerAgain = server.faults.intercept(() => "hang");
  server.faults.closeWatches();
  await clock.settle();
  assert.equal(server.faults.openWatches, 0);
  assert.equal(kind.status().lastError, "");
  await clock.advance(90_000);
  assert.match(kind.status().lastError, /silent/);
  answerAgain();
  await stop();
});
