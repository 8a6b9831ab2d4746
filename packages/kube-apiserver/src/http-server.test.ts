import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { administrator, createApiServer } from "./api-server.ts";
import { type HttpServerOptions, startHttpServer } from "./http-server.ts";
import { type JsonObject, stringAt, valueAt } from "./json.ts";
import { createSeededRandom, FakeClock } from "./testing.ts";

const configMaps = "/api/v1/namespaces/default/configmaps";

async function start(context: TestContext, options: HttpServerOptions = {}) {
  const clock = new FakeClock();
  const staticTokens = new Map([["secret", administrator]]);
  const server = createApiServer({ clock, random: createSeededRandom(7) }, { staticTokens });
  const http = await startHttpServer(server, options);
  context.after(() => http.stop());
  const ask = (path: string, init: RequestInit = {}) =>
    fetch(`${http.url}${path}`, { ...init, headers: { authorization: "Bearer secret", ...init.headers } });
  const create = (name: string) =>
    ask(configMaps, {
      method: "POST",
      body: JSON.stringify({ apiVersion: "v1", kind: "ConfigMap", metadata: { name } }),
      headers: { "content-type": "application/json" },
    });
  return { clock, server, http, ask, create };
}

test("requests go through with their query, body and user agent", async (context) => {
  const { ask } = await start(context);
  const body = JSON.stringify({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a" }, foo: 1 });
  const created = await ask(`${configMaps}?fieldValidation=Warn`, {
    method: "POST",
    body,
    headers: { "content-type": "application/json", "user-agent": "kubectl/v1.36 (linux)" },
  });
  assert.equal(created.status, 201);
  assert.equal(created.headers.get("content-type"), "application/json");
  assert.equal(created.headers.get("warning"), '299 - "unknown field \\"foo\\""');
  const read = (await (await ask(`${configMaps}/a/`)).json()) as JsonObject;
  assert.equal(stringAt(read, "metadata", "name"), "a");
  const listed = (await (await ask(`${configMaps}?fieldSelector=metadata.name%3Da`)).json()) as JsonObject;
  assert.equal((listed["items"] as unknown[]).length, 1);
});

test("health and unknown paths return plain text", async (context) => {
  const { ask } = await start(context);
  const health = await ask("/readyz");
  assert.deepEqual([health.status, await health.text()], [200, "ok"]);
  const unknown = await ask("/nope");
  assert.deepEqual([unknown.status, await unknown.text()], [404, "404 page not found\n"]);
});

test("requests without a token are rejected, unless anonymous users are allowed", async (context) => {
  const { http } = await start(context);
  for (const headers of [{}, { authorization: "Bearer wrong" }, { authorization: "Basic x" }]) {
    const response = await fetch(`${http.url}/version`, { headers });
    assert.equal(response.status, 401);
    assert.equal(((await response.json()) as JsonObject)["reason"], "Unauthorized");
  }
  const open = await start(context, { anonymous: administrator });
  assert.equal((await fetch(`${open.http.url}/version`)).status, 200);
});

test("bodies that are too large, not JSON or of another content type are rejected", async (context) => {
  const { ask } = await start(context, { bodyBytesMax: 1000 });
  const post = async (body: string, contentType = "application/json") =>
    (await ask(configMaps, { method: "POST", body, headers: { "content-type": contentType } })).status;
  assert.equal(await post("x".repeat(2000)), 413);
  assert.equal(await post("{bad"), 400);
  assert.equal(await post("k8s", "application/vnd.kubernetes.protobuf"), 415);
});

test("a watch streams one event per line until the server ends it", async (context) => {
  const { ask, create, clock } = await start(context);
  await create("a");
  const response = await ask(`${configMaps}?watch=true&timeoutSeconds=10`);
  assert.equal(response.status, 200);
  const text = response.text();
  await create("b");
  await clock.advance(10_000);
  const events = (await text)
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as JsonObject);
  const seen = events.map((event) => [event["type"], valueAt(event, "object", "metadata", "name")]);
  assert.deepEqual(seen, [
    ["ADDED", "a"],
    ["ADDED", "b"],
  ]);
});

test("the server ends the watch of a client that disconnects", async (context) => {
  const { ask, server, clock } = await start(context);
  const abort = new AbortController();
  const response = await ask(`${configMaps}?watch=true`, { signal: abort.signal });
  assert.equal(server.faults.openWatches, 1);
  abort.abort();
  await assert.rejects(response.text());
  while (server.faults.openWatches > 0) await clock.settle();
  assert.equal(clock.timerCount, 0);
});

test("stop ends watches, hanging requests and idle connections", async (context) => {
  const { ask, http, server } = await start(context);
  const watch = await ask(`${configMaps}?watch=true`);
  server.faults.intercept(({ path }) => (path === "/version" ? "hang" : undefined));
  const hanging = ask("/version");
  await http.stop();
  await assert.rejects(hanging);
  await watch.text().catch(() => undefined);
  assert.equal(server.faults.openWatches, 0);
  await assert.rejects(ask("/readyz"));
});

test("discovery lists what is served, in both forms", async (context) => {
  const { ask } = await start(context);
  const legacy = (await (await ask("/apis/apps/v1")).json()) as JsonObject;
  assert.equal(legacy["kind"], "APIResourceList");
  const accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
  const aggregated = await ask("/apis", { headers: { accept: `${accept},application/json` } });
  assert.equal(aggregated.headers.get("content-type"), accept);
  assert.equal(((await aggregated.json()) as JsonObject)["kind"], "APIGroupDiscoveryList");
  const index = (await (await ask("/openapi/v3")).json()) as JsonObject;
  const place = stringAt(index, "paths", "apis/apps/v1", "serverRelativeURL") ?? "";
  const document = (await (await ask(place)).json()) as JsonObject;
  const patch = valueAt(
    document,
    "paths",
    "/apis/apps/v1/namespaces/{namespace}/replicasets/{name}",
    "patch",
  );
  const names = (valueAt(patch, "parameters") as JsonObject[]).map(({ name }) => name);
  assert.ok(names.includes("fieldValidation"));
});
