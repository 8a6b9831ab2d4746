import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { compileStructural } from "../compile-schema.ts";
import { type JsonObject, listAt } from "../json.ts";
import { recordApply, recordUpdate, type WriteIdentity } from "./field-manager.ts";
import { decodeFieldSet, FieldSet } from "./field-set.ts";
import { printPath } from "./path-element.ts";
import { ownedFields } from "./updater.ts";

const text = { type: "string" };
const schema = compileStructural({
  type: "object",
  properties: {
    apiVersion: text,
    kind: text,
    metadata: { type: "object", properties: { name: text, managedFields: { type: "array", items: {} } } },
    spec: {
      type: "object",
      properties: {
        replicas: { type: "integer" },
        labels: { type: "object", additionalProperties: text },
        selector: { type: "object", additionalProperties: text, "x-kubernetes-map-type": "atomic" },
        tags: { type: "array", items: text, "x-kubernetes-list-type": "set" },
        args: { type: "array", items: text, "x-kubernetes-list-type": "atomic" },
        items: {
          type: "array",
          "x-kubernetes-list-type": "map",
          "x-kubernetes-list-map-keys": ["name"],
          items: { type: "object", properties: { name: text, value: text, size: { type: "integer" } } },
        },
      },
    },
  },
});

const typeMeta = { apiVersion: "v1", kind: "Thing", metadata: {} };

function by(manager: string, timestamp = "2026-01-01T00:00:00Z"): WriteIdentity {
  return {
    schema,
    apiVersion: "v1",
    manager,
    subresource: "",
    ignored: FieldSet.empty,
    blank: typeMeta,
    timestamp,
  };
}

function thing(spec: JsonObject): JsonObject {
  return { ...typeMeta, metadata: { name: "a" }, spec };
}

function apply(manager: string, live: JsonObject | undefined, spec: JsonObject, force = true): JsonObject {
  const outcome = recordApply(by(manager), live, thing(spec), force);
  assert.equal(outcome.kind, "applied");
  return outcome.kind === "applied" ? outcome.object : {};
}

function ownedBy(object: JsonObject, manager: string): string[] {
  const entry = listAt(object, "metadata", "managedFields").find(
    (item) => (item as JsonObject)["manager"] === manager,
  );
  const fields = entry === undefined ? FieldSet.empty : decodeFieldSet((entry as JsonObject)["fieldsV1"]);
  return [...fields.paths()].map(printPath);
}

// Empty maps and lists are left out: an empty list is owned by nobody, so that an object
// may keep or lose one without anyone's doing.
const word = fc.constantFrom("a", "b", "c");
const spec: fc.Arbitrary<JsonObject> = fc.record(
  {
    replicas: fc.nat(3),
    labels: fc.dictionary(word, word, { minKeys: 1, maxKeys: 3 }),
    selector: fc.dictionary(word, word, { minKeys: 1, maxKeys: 2 }),
    tags: fc.uniqueArray(word, { minLength: 1, maxLength: 3 }),
    args: fc.array(word, { minLength: 1, maxLength: 2 }),
    items: fc.uniqueArray(
      fc.record({ name: word, value: word, size: fc.nat(2) }, { requiredKeys: ["name"] }),
      {
        selector: (item) => item.name,
        minLength: 1,
        maxLength: 3,
      },
    ),
  },
  { requiredKeys: ["replicas"] },
) as fc.Arbitrary<JsonObject>;

function plain(value: JsonObject): JsonObject {
  return JSON.parse(JSON.stringify(value)) as JsonObject;
}

test("applying the same again changes nothing", () => {
  fc.assert(
    fc.property(spec, spec, (mine, others) => {
      const live = apply("me", apply("other", undefined, plain(others)), plain(mine));
      assert.deepEqual(apply("me", live, plain(mine)), live);
    }),
  );
});

function pathsOf(object: JsonObject): string[] {
  const { managedFields: _dropped, ...metadata } = object["metadata"] as JsonObject;
  return [...ownedFields(schema, { ...object, metadata }).paths()].map(printPath);
}

test("an apply replaces the manager's previous configuration", () => {
  fc.assert(
    fc.property(spec, spec, (before, after) => {
      const replaced = apply("me", apply("me", undefined, plain(before)), plain(after));
      const alone = apply("me", undefined, plain(after));
      assert.deepEqual(ownedBy(replaced, "me"), ownedBy(alone, "me"));
      assert.deepEqual(pathsOf(replaced), pathsOf(alone));
    }),
  );
});

test("an empty apply removes only fields without another owner", () => {
  fc.assert(
    fc.property(spec, spec, (mine, others) => {
      const both = apply("other", apply("me", undefined, plain(mine)), plain(others));
      const outcome = recordApply(by("me"), both, { ...typeMeta, metadata: { name: "a" } }, false);
      const left = outcome.kind === "applied" ? outcome.object : {};
      assert.deepEqual(ownedBy(left, "me"), []);
      assert.deepEqual(ownedBy(left, "other"), ownedBy(both, "other"));
      assert.deepEqual(pathsOf(left), pathsOf(apply("other", undefined, plain(others))));
    }),
  );
});

test("without force a different value is a conflict, and the same value is shared", () => {
  const live = apply("me", undefined, { replicas: 1, labels: { a: "x" } });
  const refused = recordApply(by("other"), live, thing({ replicas: 2, labels: { a: "y" } }), false);
  assert.equal(refused.kind, "conflict");
  const places = refused.kind === "conflict" ? refused.conflicts.map(({ path }) => printPath(path)) : [];
  assert.deepEqual(places, [".spec.replicas", ".spec.labels.a"]);
  const shared = apply("other", live, { replicas: 1 }, false);
  assert.deepEqual(ownedBy(shared, "me"), [".spec.replicas", ".spec.labels.a"]);
  assert.deepEqual(ownedBy(shared, "other"), [".spec.replicas"]);
});

test("force takes a field from its owner", () => {
  const live = apply("me", undefined, { replicas: 1, args: ["a"] });
  const forced = apply("other", live, { replicas: 2 });
  assert.deepEqual(ownedBy(forced, "me"), [".spec.args"]);
  assert.deepEqual(ownedBy(forced, "other"), [".spec.replicas"]);
});

test("an update owns exactly what it changed", () => {
  const live = apply("me", undefined, { replicas: 1, labels: { a: "x", b: "y" } });
  const updated = recordUpdate(by("editor"), live, {
    ...live,
    spec: { replicas: 5, labels: { a: "x", c: "z" } },
  });
  assert.deepEqual(ownedBy(updated, "editor"), [".spec.replicas", ".spec.labels.c"]);
  assert.deepEqual(ownedBy(updated, "me"), [".spec.labels.a"]);
});

test("an update that changes nothing keeps owners and times", () => {
  const live = recordUpdate(by("editor"), undefined, thing({ replicas: 1 }));
  const again = recordUpdate(by("editor", "2026-01-01T00:00:09Z"), live, live);
  assert.deepEqual(again, live);
});

test("at most ten updaters have their own entry", () => {
  let live = recordUpdate(by("u0"), undefined, thing({ labels: { l0: "x" } }));
  for (let index = 1; index < 15; index++) {
    const labels = { ...((live["spec"] as JsonObject)["labels"] as JsonObject), [`l${index}`]: "x" };
    live = recordUpdate(by(`u${index}`, `2026-01-01T00:00:${10 + index}Z`), live, {
      ...live,
      spec: { labels },
    });
  }
  const managers = listAt(live, "metadata", "managedFields").map((entry) => (entry as JsonObject)["manager"]);
  assert.equal(managers.length, 10);
  assert.equal(managers.filter((manager) => manager === "ancient-changes").length, 1);
  assert.equal(ownedBy(live, "ancient-changes").length, 8);
});

test("keyed items have the applier's order, and others keep their place", () => {
  const live = apply("other", undefined, { items: [{ name: "a" }, { name: "x" }, { name: "b" }] });
  const merged = apply("me", live, { items: [{ name: "b" }, { name: "a" }] });
  const names = listAt(merged, "spec", "items").map((item) => (item as JsonObject)["name"]);
  assert.deepEqual(names, ["x", "b", "a"]);
});
