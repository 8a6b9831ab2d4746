import assert from "node:assert/strict";
import { test } from "node:test";
import { administrator, createApiServer } from "./api-server.ts";
import { type JsonObject, listAt, valueAt } from "./json.ts";
import type { ApiRequest, ServerRequest, WholeResponse } from "./request.ts";
import { createSeededRandom, FakeClock } from "./testing.ts";

function start(user = administrator) {
  const clock = new FakeClock();
  const server = createApiServer({ clock, random: createSeededRandom(7) });
  const ask = (request: ApiRequest): WholeResponse & { readonly body: JsonObject } => {
    const full: ServerRequest = { ...request, user, userAgent: "test" };
    const response = server.handle(full);
    assert.equal(response.kind, "whole");
    return response as WholeResponse & { readonly body: JsonObject };
  };
  const namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name: "demo" } };
  ask({ method: "POST", path: "/api/v1/namespaces", body: namespace });
  return { server, ask, clock };
}

const configMaps = "/api/v1/namespaces/demo/configmaps";
const replicaSets = "/apis/apps/v1/namespaces/demo/replicasets";

function configMap(name: string, rest: JsonObject = {}): JsonObject {
  return { apiVersion: "v1", kind: "ConfigMap", metadata: { name }, ...rest };
}

function replicaSet(name: string, replicas = 1): JsonObject {
  const labels = { app: name };
  const template = { metadata: { labels }, spec: { containers: [{ name: "c", image: "i" }] } };
  const spec = { replicas, selector: { matchLabels: labels }, template };
  return { apiVersion: "apps/v1", kind: "ReplicaSet", metadata: { name }, spec };
}

function merge(path: string, body: JsonObject): ApiRequest {
  return { method: "PATCH", path, contentType: "application/merge-patch+json", body };
}

test("a created object gets its own identity and is read back unchanged", () => {
  const { ask } = start();
  const created = ask({ method: "POST", path: configMaps, body: configMap("a", { data: { x: "1" } }) });
  assert.equal(created.status, 201);
  const { uid, resourceVersion, creationTimestamp, namespace } = created.body["metadata"] as JsonObject;
  assert.match(String(uid), /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.deepEqual(
    { creationTimestamp, namespace },
    { creationTimestamp: "2026-01-01T00:00:00Z", namespace: "demo" },
  );
  const read = ask({ method: "GET", path: `${configMaps}/a` });
  assert.deepEqual(read.body, created.body);
  assert.equal(
    ask({ method: "GET", path: configMaps }).body["metadata"] !== undefined && resourceVersion !== "",
    true,
  );
});

test("the same requests give the same responses", () => {
  const run = () => {
    const { ask } = start();
    return [
      ask({ method: "POST", path: configMaps, body: configMap("", { metadata: { generateName: "g-" } }) })
        .body,
      ask({ method: "POST", path: replicaSets, body: replicaSet("r") }).body,
      ask(merge(`${replicaSets}/r`, { spec: { replicas: 3 } })).body,
      ask({ method: "GET", path: replicaSets }).body,
    ];
  };
  assert.deepEqual(run(), run());
});

test("errors have the format of the real server", () => {
  const { ask } = start();
  ask({ method: "POST", path: configMaps, body: configMap("a") });
  const cases: readonly [ApiRequest, number, string, string][] = [
    [{ method: "GET", path: `${replicaSets}/x` }, 404, "NotFound", 'replicasets.apps "x" not found'],
    [
      { method: "POST", path: configMaps, body: configMap("a") },
      409,
      "AlreadyExists",
      'configmaps "a" already exists',
    ],
    [
      { method: "POST", path: "/api/v1/namespaces/none/configmaps", body: configMap("a") },
      404,
      "NotFound",
      'namespaces "none" not found',
    ],
    [
      {
        method: "PUT",
        path: `${configMaps}/a`,
        body: configMap("a", { metadata: { name: "a", resourceVersion: "1" } }),
      },
      409,
      "Conflict",
      'Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again',
    ],
    [
      { method: "PUT", path: configMaps, body: configMap("a") },
      405,
      "MethodNotAllowed",
      "the server does not allow this method on the requested resource",
    ],
    [
      { method: "DELETE", path: "/api/v1/namespaces/default" },
      403,
      "Forbidden",
      'namespaces "default" is forbidden: this namespace may not be deleted',
    ],
    [
      { method: "POST", path: configMaps, body: configMap("b", { metadata: { name: "b", namespace: "x" } }) },
      400,
      "BadRequest",
      "the namespace of the provided object does not match the namespace sent on the request",
    ],
  ];
  for (const [request, status, reason, message] of cases) {
    const { body, ...response } = ask(request);
    assert.equal(response.status, status, message);
    assert.deepEqual(
      { kind: body["kind"], code: body["code"], reason: body["reason"], message: body["message"] },
      { kind: "Status", code: status, reason, message },
    );
  }
  assert.equal(ask({ method: "GET", path: "/apis/none/v1/things" }).body as unknown, "404 page not found\n");
});

test("an unknown field is a warning, and an error with strict validation", () => {
  const { ask } = start();
  const body = replicaSet("r");
  (body["spec"] as JsonObject)["foo"] = 1;
  const warned = ask({ method: "POST", path: replicaSets, body });
  assert.deepEqual(warned.warnings, ['unknown field "spec.foo"']);
  assert.equal(valueAt(warned.body, "spec", "foo"), undefined);
  const refused = ask({ method: "POST", path: replicaSets, query: { fieldValidation: "Strict" }, body });
  assert.equal(refused.status, 400);
  assert.match(String(refused.body["message"]), /strict decoding error: unknown field "spec\.foo"$/);
});

test("generation changes only with the spec", () => {
  const { ask } = start();
  ask({ method: "POST", path: replicaSets, body: replicaSet("r") });
  const generation = (response: WholeResponse) => valueAt(response.body, "metadata", "generation");
  assert.equal(generation(ask(merge(`${replicaSets}/r`, { metadata: { labels: { a: "b" } } }))), 1);
  assert.equal(generation(ask(merge(`${replicaSets}/r/status`, { status: { replicas: 4 } }))), 1);
  assert.equal(generation(ask(merge(`${replicaSets}/r`, { spec: { replicas: 2 } }))), 2);
});

test("the main endpoint cannot change status, and /status cannot change anything else", () => {
  const { ask } = start();
  ask({ method: "POST", path: replicaSets, body: replicaSet("r") });
  const main = ask(merge(`${replicaSets}/r`, { status: { replicas: 9 } }));
  assert.equal(valueAt(main.body, "status", "replicas"), 0);
  const status = ask(merge(`${replicaSets}/r/status`, { status: { replicas: 9 }, spec: { replicas: 9 } }));
  assert.equal(valueAt(status.body, "status", "replicas"), 9);
  assert.equal(valueAt(status.body, "spec", "replicas"), 1);
});

test("a patch that changes nothing creates no new version", () => {
  const { ask, server } = start();
  ask({ method: "POST", path: configMaps, body: configMap("a", { data: { x: "1" } }) });
  const { revision } = server.store;
  ask(merge(`${configMaps}/a`, { data: { x: "1" } }));
  assert.equal(server.store.revision, revision);
});

test("a dry run returns the object but stores nothing", () => {
  const { ask, server } = start();
  const { revision } = server.store;
  const response = ask({ method: "POST", path: configMaps, query: { dryRun: "All" }, body: configMap("a") });
  assert.equal(response.status, 201);
  assert.equal(server.store.revision, revision);
  assert.equal(ask({ method: "GET", path: `${configMaps}/a` }).status, 404);
});

test("a delete with another uid or version is rejected and deletes nothing", () => {
  const { ask } = start();
  ask({ method: "POST", path: configMaps, body: configMap("a") });
  for (const preconditions of [{ uid: "x" }, { resourceVersion: "1" }]) {
    const response = ask({ method: "DELETE", path: `${configMaps}/a`, body: { preconditions } });
    assert.equal(response.status, 409);
    assert.match(
      String(response.body["message"]),
      /^Operation cannot be fulfilled on ConfigMap "a": the (UID|ResourceVersion) in the precondition/,
    );
  }
  assert.equal(ask({ method: "GET", path: `${configMaps}/a` }).status, 200);
});

test("a finalizer keeps a deleted object until it is removed", () => {
  const { ask } = start();
  ask({
    method: "POST",
    path: configMaps,
    body: configMap("a", { metadata: { name: "a", finalizers: ["x/y"] } }),
  });
  const deleting = ask({ method: "DELETE", path: `${configMaps}/a` });
  assert.equal(valueAt(deleting.body, "metadata", "deletionTimestamp"), "2026-01-01T00:00:00Z");
  const added = ask(merge(`${configMaps}/a`, { metadata: { finalizers: ["x/y", "x/z"] } }));
  assert.equal(added.status, 422);
  ask(merge(`${configMaps}/a`, { metadata: { finalizers: null } }));
  assert.equal(ask({ method: "GET", path: `${configMaps}/a` }).status, 404);
});

test("foreground and orphan deletion become finalizers", () => {
  const { ask } = start();
  for (const [propagationPolicy, finalizer] of [
    ["Foreground", "foregroundDeletion"],
    ["Orphan", "orphan"],
  ] as const) {
    ask({ method: "POST", path: configMaps, body: configMap(finalizer.toLowerCase()) });
    const response = ask({
      method: "DELETE",
      path: `${configMaps}/${finalizer.toLowerCase()}`,
      body: { propagationPolicy },
    });
    assert.deepEqual(listAt(response.body, "metadata", "finalizers"), [finalizer]);
  }
});

test("a terminating namespace accepts nothing new and is removed when it is finalized", () => {
  const { ask } = start();
  const deleting = ask({ method: "DELETE", path: "/api/v1/namespaces/demo" });
  assert.equal(valueAt(deleting.body, "status", "phase"), "Terminating");
  const refused = ask({ method: "POST", path: configMaps, body: configMap("a") });
  assert.equal(refused.status, 403);
  assert.equal(listAt(refused.body, "details", "causes").length, 1);
  const body = { ...deleting.body, spec: { finalizers: [] } };
  assert.equal(ask({ method: "PUT", path: "/api/v1/namespaces/demo/finalize", body }).status, 200);
  assert.equal(ask({ method: "GET", path: "/api/v1/namespaces/demo" }).status, 404);
});

test("a user without a rule is rejected with the reason", () => {
  const { ask } = start({ username: "joe", groups: ["system:authenticated"] });
  const response = ask({ method: "GET", path: "/api/v1/namespaces/default/pods" });
  assert.equal(response.status, 403);
  assert.equal(
    response.body["message"],
    'pods is forbidden: User "joe" cannot list resource "pods" in API group "" in the namespace "default"',
  );
});

test("nothing runs after stop", async () => {
  const { server, clock } = start();
  const watch = server.handle({
    method: "GET",
    path: configMaps,
    query: { watch: "true", allowWatchBookmarks: "true" },
    user: administrator,
  });
  assert.equal(watch.kind, "stream");
  server.stop();
  assert.equal(clock.timerCount, 0);
  assert.equal(server.faults.openWatches, 0);
});
