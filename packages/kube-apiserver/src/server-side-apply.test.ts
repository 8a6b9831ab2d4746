import assert from "node:assert/strict";
import { test } from "node:test";
import { administrator, createApiServer } from "./api-server.ts";
import { type JsonObject, listAt, valueAt } from "./json.ts";
import type { WholeResponse } from "./request.ts";
import { createSeededRandom, FakeClock } from "./testing.ts";

const place = "/apis/apps/v1/namespaces/default/replicasets";

function start() {
  const clock = new FakeClock();
  const server = createApiServer({ clock, random: createSeededRandom(7) });
  const apply = (body: JsonObject, query: Record<string, string> = {}, subresource = "") => {
    const path = `${place}/${String(valueAt(body, "metadata", "name"))}${subresource}`;
    const contentType = "application/apply-patch+yaml";
    const response = server.handle({
      method: "PATCH",
      path,
      contentType,
      query: { fieldManager: "me", ...query },
      body,
      user: administrator,
    });
    return response as WholeResponse & { readonly body: JsonObject };
  };
  return { server, clock, apply };
}

interface Container {
  readonly name: string;
  readonly [field: string]: unknown;
}

function replicaSet(
  containers: readonly Container[],
  rest: { replicas?: number; podSpec?: JsonObject } = {},
): JsonObject {
  const labels = { app: "web" };
  const spec = { containers: containers as unknown as JsonObject[], ...rest.podSpec };
  return {
    apiVersion: "apps/v1",
    kind: "ReplicaSet",
    metadata: { name: "web" },
    spec: {
      replicas: rest.replicas ?? 0,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec },
    },
  };
}

const web = { name: "web", image: "i" };

function containersOf(body: JsonObject): JsonObject[] {
  return listAt(body, "spec", "template", "spec", "containers") as JsonObject[];
}

test("the first apply creates, the second updates, and a repeated one writes nothing", () => {
  const { apply, server } = start();
  assert.equal(apply(replicaSet([web])).status, 201);
  const second = apply(replicaSet([web], { replicas: 2 }));
  assert.equal(second.status, 200);
  const { revision } = server.store;
  assert.deepEqual(apply(replicaSet([web], { replicas: 2 })).body, second.body);
  assert.equal(server.store.revision, revision);
});

test("a quantity in another notation is not a change", async () => {
  const { apply, server, clock } = start();
  const limits = (cpu: string) => replicaSet([{ ...web, resources: { limits: { cpu } } }]);
  apply(limits("0.5"));
  const { revision } = server.store;
  await clock.advance(5_000);
  for (const cpu of ["0.5", "500m"]) {
    const again = apply(limits(cpu));
    assert.deepEqual(valueAt(containersOf(again.body)[0], "resources"), { limits: { cpu: "500m" } });
  }
  assert.equal(server.store.revision, revision);
});

test("a field that is no longer sent is removed, and defaults have no owner", () => {
  const { apply } = start();
  apply(
    replicaSet([
      {
        ...web,
        env: [
          { name: "A", value: "1" },
          { name: "B", value: "2" },
        ],
      },
      { name: "side", image: "s" },
    ]),
  );
  const { body } = apply(replicaSet([{ ...web, env: [{ name: "B", value: "2" }] }]));
  assert.deepEqual(
    containersOf(body).map(({ name }) => name),
    ["web"],
  );
  assert.deepEqual(containersOf(body)[0]?.["env"], [{ name: "B", value: "2" }]);
  assert.equal(containersOf(body)[0]?.["imagePullPolicy"], "Always");
  assert.ok(!JSON.stringify(valueAt(body, "metadata", "managedFields")).includes("imagePullPolicy"));
});

test("a conflict names the field and its manager; force takes the field over", () => {
  const { apply } = start();
  apply(replicaSet([web]));
  const other = replicaSet([{ ...web, image: "other" }]);
  const refused = apply(other, { fieldManager: "other" });
  assert.equal(refused.status, 409);
  assert.deepEqual(refused.body, {
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Failure",
    message:
      'Apply failed with 1 conflict: conflict with "me": .spec.template.spec.containers[name="web"].image',
    reason: "Conflict",
    details: {
      causes: [
        {
          reason: "FieldManagerConflict",
          message: 'conflict with "me"',
          field: '.spec.template.spec.containers[name="web"].image',
        },
      ],
    },
    code: 409,
  });
  assert.equal(apply(other, { fieldManager: "other", force: "true" }).status, 200);
  assert.equal(apply(replicaSet([web])).status, 409);
});

test("the conflict names an update that was not an apply", () => {
  const { apply, server } = start();
  apply(replicaSet([web]));
  server.handle({
    method: "PATCH",
    path: `${place}/web`,
    contentType: "application/merge-patch+json",
    query: { fieldManager: "kubectl-edit" },
    body: { spec: { replicas: 3 } },
    user: administrator,
  });
  const [cause] = listAt(apply(replicaSet([web])).body, "details", "causes");
  assert.deepEqual(cause, {
    reason: "FieldManagerConflict",
    message: 'conflict with "kubectl-edit" using apps/v1',
    field: ".spec.replicas",
  });
});

test("uid and resourceVersion in the body are preconditions", () => {
  const { apply } = start();
  const withMeta = (metadata: JsonObject) => ({
    ...replicaSet([web]),
    metadata: { name: "web", ...metadata },
  });
  const absent = apply(withMeta({ uid: "x" }));
  assert.equal(absent.status, 409);
  assert.match(
    String(absent.body["message"]),
    /uid mismatch: the provided object specified uid x, and no existing object was found$/,
  );
  apply(replicaSet([web]));
  assert.equal(apply(withMeta({ uid: "x" })).status, 422);
  assert.equal(apply(withMeta({ resourceVersion: "1" })).status, 409);
});

test("an invalid body is rejected before the merge", () => {
  const { apply } = start();
  const bad = (change: JsonObject): JsonObject => ({ ...replicaSet([web]), ...change });
  const cases: readonly [JsonObject, number, RegExp][] = [
    [bad({ spec: { foo: 1 } }), 500, /\.spec\.foo: field not declared in schema$/],
    [
      bad({ spec: { replicas: "x" } }),
      500,
      /\.spec\.replicas: expected numeric \(int or float\), got string$/,
    ],
    [bad({ kind: "Foo" }), 400, /^invalid object type: apps\/v1, Kind=Foo$/],
    [bad({ metadata: { name: "web", managedFields: [] } }), 400, /^metadata\.managedFields must be nil$/],
    [
      replicaSet([{ ...web, env: [{ name: "A" }, { name: "A" }] }]),
      500,
      /duplicate entries for key \[name="A"\]$/,
    ],
  ];
  for (const [body, status, message] of cases) {
    const response = apply(body);
    assert.equal(response.status, status, String(response.body["message"]));
    assert.match(String(response.body["message"]), message);
  }
  const nobody = apply(replicaSet([web]), { fieldManager: "" });
  assert.equal(nobody.status, 422);
});

test("fields applied to status are owned there, and the main endpoint does not change them", () => {
  const { apply } = start();
  apply(replicaSet([web]));
  const status = {
    apiVersion: "apps/v1",
    kind: "ReplicaSet",
    metadata: { name: "web" },
    status: { replicas: 7 },
  };
  const { body } = apply(status, { fieldManager: "reporter" }, "/status");
  assert.equal(valueAt(body, "status", "replicas"), 7);
  const entries = listAt(body, "metadata", "managedFields") as JsonObject[];
  const own = entries.find(({ manager }) => manager === "reporter");
  assert.deepEqual(
    [own?.["subresource"], own?.["fieldsV1"]],
    ["status", { "f:status": { "f:replicas": {} } }],
  );
  assert.equal(valueAt(apply(replicaSet([web])).body, "status", "replicas"), 7);
});
