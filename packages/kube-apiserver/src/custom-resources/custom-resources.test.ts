import assert from "node:assert/strict";
import { test } from "node:test";
import { administrator, createApiServer } from "../api-server.ts";
import { type JsonObject, listAt, stringAt, valueAt } from "../json.ts";
import type { ApiRequest, WholeResponse } from "../request.ts";
import { createSeededRandom, FakeClock } from "../testing.ts";

const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const things = "/apis/example.com/v1/namespaces/default/things";

const specSchema = {
  type: "object",
  required: ["size"],
  properties: {
    size: { type: "integer", minimum: 1, maximum: 5, default: 2 },
    color: { type: "string", enum: ["red", "blue"] },
    port: { "x-kubernetes-int-or-string": true },
    parts: {
      type: "array",
      "x-kubernetes-list-type": "map",
      "x-kubernetes-list-map-keys": ["name"],
      items: {
        type: "object",
        required: ["name"],
        properties: { name: { type: "string" }, count: { type: "integer", default: 1 } },
      },
    },
    free: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
  },
};

function definition(): JsonObject {
  const openAPIV3Schema = {
    type: "object",
    properties: { spec: specSchema, status: { type: "object", properties: { size: { type: "integer" } } } },
  };
  const version = {
    name: "v1",
    served: true,
    storage: true,
    schema: { openAPIV3Schema },
    subresources: {
      status: {},
      scale: { specReplicasPath: ".spec.size", statusReplicasPath: ".status.size" },
    },
    additionalPrinterColumns: [{ name: "Size", type: "integer", jsonPath: ".spec.size" }],
  };
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: "things.example.com" },
    spec: {
      group: "example.com",
      scope: "Namespaced",
      names: { plural: "things", kind: "Thing", shortNames: ["th"] },
      versions: [version],
    },
  };
}

async function start() {
  const clock = new FakeClock();
  const server = createApiServer({ clock, random: createSeededRandom(7) });
  const ask = (request: ApiRequest) =>
    server.handle({ ...request, user: administrator }) as WholeResponse & { readonly body: JsonObject };
  ask({ method: "POST", path: definitions, body: definition() });
  await clock.advance(0);
  return { server, clock, ask };
}

function thing(name: string, spec: JsonObject, rest: JsonObject = {}): JsonObject {
  return { apiVersion: "example.com/v1", kind: "Thing", metadata: { name }, spec, ...rest };
}

test("a definition is established a moment later, and only then served", async () => {
  const clock = new FakeClock();
  const server = createApiServer({ clock, random: createSeededRandom(7) });
  const ask = (request: ApiRequest) =>
    server.handle({ ...request, user: administrator }) as WholeResponse & { readonly body: JsonObject };
  ask({ method: "POST", path: definitions, body: definition() });
  assert.equal(ask({ method: "GET", path: things }).status, 404);
  await clock.advance(0);
  const { body } = ask({ method: "GET", path: `${definitions}/things.example.com` });
  const conditions = listAt(body, "status", "conditions").map((item) => [
    stringAt(item, "type"),
    stringAt(item, "status"),
  ]);
  assert.deepEqual(conditions, [
    ["NamesAccepted", "True"],
    ["Established", "True"],
  ]);
  assert.equal(ask({ method: "GET", path: things }).status, 200);
  const list = ask({ method: "GET", path: "/apis/example.com/v1" }).body;
  assert.deepEqual(
    listAt(list, "resources").map((item) => stringAt(item, "name")),
    ["things", "things/scale", "things/status"],
  );
});

test("unknown fields are dropped, absent ones get their defaults", async () => {
  const { ask } = await start();
  const body = thing(
    "a",
    { color: "red", nope: 1, parts: [{ name: "x" }], free: { any: [1] } },
    { status: { size: 9 }, top: 1 },
  );
  const created = ask({ method: "POST", path: things, body });
  assert.equal(created.status, 201);
  assert.deepEqual(created.body["spec"], {
    color: "red",
    parts: [{ name: "x", count: 1 }],
    free: { any: [1] },
    size: 2,
  });
  assert.equal(created.body["status"], undefined);
  assert.deepEqual(created.warnings, ['unknown field "spec.nope"', 'unknown field "top"']);
});

test("schema violations are rejected with one cause per field", async () => {
  const { ask } = await start();
  const spec = { size: 9, color: "green", port: true, parts: [{}, { name: "x" }, { name: "x" }] };
  const { status, body } = ask({ method: "POST", path: things, body: thing("a", spec) });
  assert.equal(status, 422);
  const causes = listAt(body, "details", "causes").map((cause) => [
    stringAt(cause, "reason"),
    stringAt(cause, "field"),
  ]);
  assert.deepEqual(causes.sort(), [
    ["FieldValueDuplicate", "spec.parts[2]"],
    ["FieldValueInvalid", "spec.size"],
    ["FieldValueNotSupported", "spec.color"],
    ["FieldValueRequired", "spec.parts[0].name"],
    ["FieldValueTypeInvalid", "spec.port"],
  ]);
});

test("apply merges keyed lists of a custom resource, and rejects undeclared fields", async () => {
  const { ask } = await start();
  const apply = (fieldManager: string, spec: JsonObject) =>
    ask({
      method: "PATCH",
      path: `${things}/a`,
      contentType: "application/apply-patch+yaml",
      query: { fieldManager },
      body: thing("a", spec),
    });
  assert.equal(apply("one", { parts: [{ name: "x" }] }).status, 201);
  const merged = apply("two", { parts: [{ name: "y", count: 3 }] });
  assert.deepEqual(valueAt(merged.body, "spec", "parts"), [
    { name: "x", count: 1 },
    { name: "y", count: 3 },
  ]);
  assert.deepEqual(valueAt(apply("one", {}).body, "spec", "parts"), [{ name: "y", count: 3 }]);
  assert.match(
    String(apply("one", { nope: 1 }).body["message"]),
    /\.spec\.nope: field not declared in schema$/,
  );
});

test("an update must have the version it replaces, and /status cannot change metadata", async () => {
  const { ask } = await start();
  ask({ method: "POST", path: things, body: thing("a", { size: 3 }) });
  const blind = ask({ method: "PUT", path: `${things}/a`, body: thing("a", { size: 4 }) });
  assert.equal(blind.status, 422);
  const status = ask({
    method: "PATCH",
    path: `${things}/a/status`,
    contentType: "application/merge-patch+json",
    body: { metadata: { labels: { a: "b" } }, spec: { size: 5 }, status: { size: 4 } },
  });
  assert.equal(valueAt(status.body, "metadata", "labels"), undefined);
  assert.deepEqual([status.body["spec"], status.body["status"]], [{ size: 3 }, { size: 4 }]);
  const scale = ask({ method: "GET", path: `${things}/a/scale` }).body;
  assert.deepEqual([scale["spec"], scale["status"]], [{ replicas: 3 }, { replicas: 4 }]);
});

test("strategic merge patches are for built-in kinds only", async () => {
  const { ask } = await start();
  ask({ method: "POST", path: things, body: thing("a", { size: 3 }) });
  const contentType = "application/strategic-merge-patch+json";
  assert.equal(ask({ method: "PATCH", path: `${things}/a`, contentType, body: {} }).status, 415);
});

test("a table shows the columns of the definition", async () => {
  const { ask } = await start();
  ask({ method: "POST", path: things, body: thing("a", { size: 3 }) });
  const accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
  const { body } = ask({ method: "GET", path: things, accept });
  assert.deepEqual(
    listAt(body, "columnDefinitions").map((column) => stringAt(column, "name")),
    ["Name", "Size"],
  );
  assert.deepEqual(valueAt(listAt(body, "rows")[0], "cells"), ["a", 3]);
});

test("deleting a definition deletes its instances", async () => {
  const { ask, clock, server } = await start();
  ask({ method: "POST", path: things, body: thing("a", {}) });
  const deleting = ask({ method: "DELETE", path: `${definitions}/things.example.com` });
  assert.deepEqual(listAt(deleting.body, "metadata", "finalizers"), [
    "customresourcecleanup.apiextensions.k8s.io",
  ]);
  await clock.advance(0);
  assert.equal(ask({ method: "GET", path: `${definitions}/things.example.com` }).status, 404);
  assert.equal(ask({ method: "GET", path: things }).body as unknown, "404 page not found\n");
  assert.deepEqual(server.store.list({ group: "example.com", plural: "things" }), []);
});
