import assert from "node:assert/strict";
import { test } from "node:test";
import { administrator, createApiServer } from "./api-server.ts";
import { createHandler } from "./handler.ts";
import { type JsonObject, stringAt, valueAt } from "./json.ts";
import { createSeededRandom, FakeClock } from "./testing.ts";

const path = "/api/v1/namespaces/default/configmaps";

function start(options: { changesMax?: number } = {}) {
  const clock = new FakeClock();
  const server = createApiServer({ clock, random: createSeededRandom(7) }, options);
  const write = (method: "POST" | "PATCH" | "DELETE", name: string, body?: JsonObject) =>
    server.handle({
      method,
      path: method === "POST" ? path : `${path}/${name}`,
      ...(method === "PATCH" ? { contentType: "application/merge-patch+json" } : {}),
      ...(body === undefined ? {} : { body }),
      user: administrator,
    });
  const create = (name: string, labels: JsonObject = {}) =>
    write("POST", name, { apiVersion: "v1", kind: "ConfigMap", metadata: { name, labels } });
  const handler = createHandler(server);
  const abort = new AbortController();
  const open = async (query: Record<string, string>, signal = abort.signal) => {
    const response = await handler({ method: "GET", path, query }, signal);
    if (response.kind === "stream") return response;
    return assert.fail(`the watch was refused: ${JSON.stringify(response.body)}`);
  };
  const seen: string[] = [];
  const watch = async (query: Record<string, string> = {}) => {
    const stream = await open({ watch: "true", ...query });
    const ended = (async () => {
      for await (const event of stream.values) seen.push(describe(event as JsonObject));
    })().catch((error: unknown) => seen.push(`thrown ${String(error)}`));
    return { ended };
  };
  return { clock, server, write, create, watch, seen, handler, open, abort };
}

function describe(event: JsonObject): string {
  if (event["type"] === "ERROR")
    return `ERROR ${valueAt(event, "object", "code")} ${stringAt(event, "object", "reason")}`;
  if (event["type"] === "BOOKMARK")
    return `BOOKMARK ${stringAt(event, "object", "metadata", "resourceVersion")}`;
  return `${event["type"]} ${stringAt(event, "object", "metadata", "name")} ${stringAt(event, "object", "metadata", "resourceVersion")}`;
}

test("a watch without a version begins with the existing objects", async () => {
  const { create, watch, seen, clock } = start();
  create("a");
  await watch();
  create("b");
  await clock.settle();
  assert.deepEqual(seen, ["ADDED a 5", "ADDED b 6"]);
});

test("a watch from a version delivers every later change once and in order", async () => {
  const { create, write, watch, seen, clock } = start();
  create("a");
  create("b");
  write("PATCH", "a", { data: { x: "1" } });
  await watch({ resourceVersion: "5" });
  write("DELETE", "b");
  await clock.settle();
  assert.deepEqual(seen, ["ADDED b 6", "MODIFIED a 7", "DELETED b 8"]);
});

test("objects that start or stop matching are sent as added and deleted", async () => {
  const { create, write, watch, seen, clock } = start();
  await watch({ labelSelector: "in=yes" });
  create("a", { in: "no" });
  write("PATCH", "a", { metadata: { labels: { in: "yes" } } });
  write("PATCH", "a", { data: { x: "1" } });
  write("PATCH", "a", { metadata: { labels: { in: "no" } } });
  write("PATCH", "a", { data: { x: "2" } });
  await clock.settle();
  assert.deepEqual(seen, ["ADDED a 6", "MODIFIED a 7", "DELETED a 8"]);
});

test("a watch from a compacted version gets one error event and ends", async () => {
  const { create, server, watch, seen } = start();
  create("a");
  create("b");
  server.faults.compact();
  const { ended } = await watch({ resourceVersion: "5" });
  await ended;
  assert.deepEqual(seen, ["ERROR 410 Expired"]);
});

test("bookmarks come every minute and before the end, and can be switched off", async () => {
  const { watch, seen, clock, server } = start();
  const { ended } = await watch({ allowWatchBookmarks: "true", timeoutSeconds: "150" });
  await clock.advance(119_000);
  assert.deepEqual(seen, ["BOOKMARK 4"]);
  server.faults.stopBookmarks();
  await clock.advance(31_000);
  await ended;
  assert.deepEqual(seen, ["BOOKMARK 4"]);
  assert.equal(clock.timerCount, 0);
});

test("initial events end with a marked bookmark", async () => {
  const { create, open } = start();
  create("a");
  const query = {
    watch: "true",
    allowWatchBookmarks: "true",
    sendInitialEvents: "true",
    resourceVersionMatch: "NotOlderThan",
  };
  const stream = await open(query);
  const events: JsonObject[] = [];
  for await (const event of stream.values) {
    events.push(event as JsonObject);
    if (events.length === 2) break;
  }
  assert.equal(valueAt(events[1], "object", "metadata", "annotations", "k8s.io/initial-events-end"), "true");
});

test("closed watches end without an error, and dropped events are lost", async () => {
  const { create, watch, seen, server, clock } = start();
  const { ended } = await watch();
  server.faults.dropEvents(1);
  create("a");
  create("b");
  await clock.settle();
  server.faults.closeWatches();
  await ended;
  assert.deepEqual(seen, ["ADDED b 6"]);
  assert.equal(server.faults.openWatches, 0);
});

test("a watcher that aborts or stops reading leaves nothing behind", async () => {
  const { watch, seen, server, clock, abort, open } = start();
  const { ended } = await watch({ allowWatchBookmarks: "true" });
  abort.abort(new Error("enough"));
  await ended;
  assert.match(seen[0] ?? "", /enough/);
  const unread = new AbortController();
  const other = await open({ watch: "1" }, unread.signal);
  assert.equal(server.faults.openWatches, 1);
  unread.abort(new Error("never read"));
  assert.equal(server.faults.openWatches, 0);
  await assert.rejects(async () => {
    for await (const _event of other.values) assert.fail("no events were expected");
  });
  assert.equal(server.faults.openWatches, 0);
  assert.equal(clock.timerCount, 0);
});

test("a watch begins with every object, however many there are, and only a watcher that falls behind later ends", async () => {
  const { server, seen, watch, clock, open } = start({ changesMax: 30_000 });
  const put = (name: string) =>
    server.store.put(
      { group: "", plural: "configmaps", namespace: "default", name },
      { apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace: "default" } },
    );
  for (let count = 1; count <= 12_000; count++) put(`c${count}`);
  await watch({
    sendInitialEvents: "true",
    resourceVersionMatch: "NotOlderThan",
    allowWatchBookmarks: "true",
  });
  const unread = await open({ watch: "1" });
  await clock.settle();
  assert.equal(seen.length, 12_001);
  assert.match(seen.at(-1) ?? "", /^BOOKMARK/);
  for (let count = 1; count <= 10_001; count++) put("c1");
  let read = 0;
  for await (const _event of unread.values) read += 1;
  assert.equal(read, 22_000);
});

test("a client that changes an event does not affect the server", async () => {
  const { create, handler, open, abort } = start();
  create("a", { keep: "me" });
  const stream = await open({ watch: "1" });
  for await (const event of stream.values) {
    (valueAt(event, "object", "metadata", "labels") as JsonObject)["keep"] = "changed";
    break;
  }
  const read = await handler({ method: "GET", path: `${path}/a` }, abort.signal);
  assert.ok(read.kind === "whole");
  assert.equal(valueAt(read.body, "metadata", "labels", "keep"), "me");
});

test("an intercepted request fails as configured, or hangs until it is aborted", async () => {
  const { server, handler } = start();
  const stop = server.faults.intercept(({ method }) =>
    method === "GET" ? "hang" : { kind: "whole", status: 503, body: "later", retryAfterSeconds: 3 },
  );
  const failed = await handler({ method: "POST", path, body: {} }, new AbortController().signal);
  assert.deepEqual(failed, { kind: "whole", status: 503, body: "later", retryAfterSeconds: 3 });
  const giveUp = new AbortController();
  const hanging = handler({ method: "GET", path }, giveUp.signal);
  giveUp.abort(new Error("given up"));
  await assert.rejects(hanging, /given up/);
  stop();
  const answered = await handler({ method: "GET", path }, new AbortController().signal);
  assert.ok(answered.kind === "whole" && answered.status === 200);
});
