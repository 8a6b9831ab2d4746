import assert from "node:assert/strict";
import { test } from "node:test";
import { administrator, createApiServer } from "./api-server.ts";
import { type JsonObject, listAt, stringAt, valueAt } from "./json.ts";
import type { WholeResponse } from "./request.ts";
import { createSeededRandom, FakeClock } from "./testing.ts";

const path = "/api/v1/namespaces/default/configmaps";

function start(names: readonly string[]) {
  const server = createApiServer({ clock: new FakeClock(), random: createSeededRandom(7) });
  const create = (name: string) => {
    const body = {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name, labels: { first: name.slice(0, 1) } },
    };
    server.handle({ method: "POST", path, body, user: administrator });
  };
  for (const name of names) create(name);
  const list = (query: Record<string, string>) =>
    server.handle({ method: "GET", path, query, user: administrator }) as WholeResponse & {
      readonly body: JsonObject;
    };
  return { server, create, list };
}

function namesOf(body: JsonObject): string[] {
  return listAt(body, "items").map((item) => stringAt(item, "metadata", "name") ?? "");
}

function tokenOf(body: JsonObject): string {
  return stringAt(body, "metadata", "continue") ?? "";
}

test("all pages show the same state, even with writes between them", () => {
  const { list, create, server } = start(["a", "b", "c", "d", "e"]);
  const first = list({ limit: "2" }).body;
  assert.deepEqual(namesOf(first), ["a", "b"]);
  assert.equal(valueAt(first, "metadata", "remainingItemCount"), 3);
  create("bb");
  server.handle({ method: "DELETE", path: `${path}/c`, user: administrator });
  const second = list({ limit: "2", continue: tokenOf(first) }).body;
  const third = list({ limit: "2", continue: tokenOf(second) }).body;
  assert.deepEqual([namesOf(second), namesOf(third)], [["c", "d"], ["e"]]);
  assert.equal(tokenOf(third), "");
  assert.equal(valueAt(third, "metadata", "resourceVersion"), valueAt(first, "metadata", "resourceVersion"));
  assert.deepEqual(namesOf(list({}).body), ["a", "b", "bb", "d", "e"]);
});

test("with a selector there is no remaining item count", () => {
  const { list } = start(["a1", "a2", "b1", "b2"]);
  const { body } = list({ limit: "1", labelSelector: "first=a" });
  assert.deepEqual(namesOf(body), ["a1"]);
  assert.equal(valueAt(body, "metadata", "remainingItemCount"), undefined);
  assert.deepEqual(namesOf(list({ fieldSelector: "metadata.name!=a1", labelSelector: "first=a" }).body), [
    "a2",
  ]);
});

test("an expired page is an error with a token to continue in the current state", () => {
  const { list, create, server } = start(["a", "b", "c"]);
  const first = list({ limit: "1" }).body;
  create("bb");
  server.faults.compact();
  const gone = list({ limit: "1", continue: tokenOf(first) });
  assert.equal(gone.status, 410);
  assert.equal(gone.body["reason"], "Expired");
  assert.deepEqual(namesOf(list({ continue: tokenOf(gone.body) }).body), ["b", "bb", "c"]);
});

test("an exact version shows the past, a minimum version the present", () => {
  const { list, create } = start(["a"]);
  create("b");
  const exact = list({ resourceVersion: "5", resourceVersionMatch: "Exact" }).body;
  assert.deepEqual([namesOf(exact), valueAt(exact, "metadata", "resourceVersion")], [["a"], "5"]);
  const present = list({ resourceVersion: "5", resourceVersionMatch: "NotOlderThan" }).body;
  assert.deepEqual(namesOf(present), ["a", "b"]);
});

test("a version from the future is a timeout with its own cause", () => {
  const { list } = start([]);
  const response = list({ resourceVersion: "999" });
  assert.equal(response.status, 504);
  assert.equal(response.retryAfterSeconds, 1);
  assert.equal(stringAt(listAt(response.body, "details", "causes")[0], "reason"), "ResourceVersionTooLarge");
});

test("invalid queries are rejected", () => {
  const { list } = start([]);
  const cases: readonly [Record<string, string>, number, RegExp][] = [
    [{ limit: "x" }, 400, /strconv\.ParseInt: parsing "x": invalid syntax/],
    [{ continue: "zzz" }, 400, /continue key is not valid/],
    [{ resourceVersion: "x" }, 400, /invalid resource version/],
    [{ resourceVersionMatch: "Exact" }, 422, /forbidden unless resourceVersion is provided/],
    [
      { fieldSelector: "spec.x=1" },
      400,
      /"spec\.x" is not a known field selector: only "metadata\.name", "metadata\.namespace"/,
    ],
  ];
  for (const [query, status, message] of cases) {
    const response = list(query);
    assert.equal(response.status, status);
    assert.match(String(response.body["message"]), message);
  }
});
