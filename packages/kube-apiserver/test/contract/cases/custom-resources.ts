// Custom resources: their definition, and what the server does to instances.
import assert from "node:assert/strict";
import { contractCase } from "../contract-case.ts";
import { customKind, defineKind, definitionOf, established } from "../custom-kind.ts";
import { eventually } from "../eventually.ts";
import { ciliumNetworkPolicies, customResourceDefinitions } from "../fixtures.ts";
import { at, managedBy, ownedFields } from "../manifest.ts";
import { invalid, refused } from "../refusal.ts";
import { describeEvent } from "../watcher.ts";

const sized = {
  properties: { size: { type: "integer", minimum: 1, maximum: 9 }, color: { type: "string" } },
};

const rules = {
  properties: {
    rules: {
      type: "array",
      "x-kubernetes-list-type": "map",
      "x-kubernetes-list-map-keys": ["name"],
      items: {
        type: "object",
        required: ["name"],
        properties: { name: { type: "string" }, value: { type: "string" } },
      },
    },
    tags: { type: "array", "x-kubernetes-list-type": "set", items: { type: "string" } },
    steps: { type: "array", items: { type: "string" } },
  },
};

const limited = {
  required: ["color"],
  properties: {
    size: { type: "integer", minimum: 1, maximum: 9 },
    color: { type: "string", enum: ["red", "green"] },
    code: { type: "string", pattern: "^[a-z]+$", maxLength: 5 },
  },
};

export const customResourceCases = [
  contractCase("definition: is accepted, established and filled in", async (trial) => {
    const kind = customKind(trial);
    const name = `${kind.plural}.${kind.group}`;
    await trial.create(customResourceDefinitions, definitionOf(kind));
    trial.after(() => trial.delete(customResourceDefinitions, name));
    const definition = await established(trial, name);
    const names = { kind: "Widget", listKind: "WidgetList", plural: "widgets", singular: "widget" };
    assert.deepEqual(at(definition, "spec.names"), names);
    assert.deepEqual(at(definition, "status.acceptedNames"), names);
    assert.deepEqual(at(definition, "status.storedVersions"), ["v1"]);
    assert.deepEqual(at(definition, "spec.conversion"), { strategy: "None" });
  }),
  contractCase("definition: can be applied, and applied again without a change", async (trial) => {
    const kind = customKind(trial);
    const name = `${kind.plural}.${kind.group}`;
    trial.after(() => trial.delete(customResourceDefinitions, name));
    await trial.apply(customResourceDefinitions, definitionOf(kind));
    const settled = await established(trial, name);
    const again = await trial.apply(customResourceDefinitions, definitionOf(kind));
    assert.equal(again.metadata?.generation, settled.metadata?.generation);
  }),
  contractCase("definition: whose name is not plural and group is refused", async (trial) => {
    const definition = definitionOf(customKind(trial));
    await invalid(
      trial.create(customResourceDefinitions, { ...definition, metadata: { name: "other.example" } }),
      ["FieldValueInvalid metadata.name"],
      /must be spec\.names\.plural\+"\."\+spec\.group/,
    );
  }),
  contractCase("definition: without a schema is refused", async (trial) => {
    const definition = definitionOf(customKind(trial), { version: { schema: undefined } });
    await invalid(trial.create(customResourceDefinitions, definition), [
      "FieldValueRequired spec.versions[0].schema.openAPIV3Schema",
    ]);
  }),
  contractCase("definition: a group that nobody defined is answered with a page", async (trial) => {
    const kind = customKind(trial);
    const { status, body } = await trial.send({ method: "GET", path: trial.path(kind) });
    assert.equal(status, 404);
    assert.equal(String(body).trim(), "404 page not found");
  }),
  contractCase("definition: deleting it takes the instances and the endpoint away", async (trial) => {
    const kind = await defineKind(trial);
    const name = `${kind.plural}.${kind.group}`;
    await trial.apply(kind, { metadata: { name: "a" }, spec: { one: 1 } });
    await trial.delete(customResourceDefinitions, name);
    await eventually("the endpoint is gone", async () => {
      assert.equal((await trial.send({ method: "GET", path: trial.path(kind) })).status, 404);
    });
    await eventually("the definition is gone", async () => {
      assert.equal(await trial.find(customResourceDefinitions, name), undefined);
    });
    await trial.create(customResourceDefinitions, definitionOf(kind));
    await eventually("it is served again, and empty", async () => {
      assert.deepEqual(await trial.names(kind), []);
    });
  }),
  contractCase("instance: apply creates and changes it like any other object", async (trial) => {
    const kind = await defineKind(trial, { spec: sized });
    const first = await trial.applyResult(kind, { metadata: { name: "a" }, spec: { size: 1, color: "red" } });
    assert.equal(first.kind, "created");
    assert.equal(first.object.metadata?.generation, 1);
    const second = await trial.applyResult(kind, { metadata: { name: "a" }, spec: { size: 2 } });
    assert.equal(second.kind, "applied");
    assert.deepEqual(at(second.object, "spec"), { size: 2 });
    assert.equal(second.object.metadata?.generation, 2);
    assert.deepEqual(ownedFields(second.object, "alpha"), ["spec.size"]);
  }),
  contractCase("instance: the same apply again keeps its version", async (trial) => {
    const kind = await defineKind(trial, { spec: sized });
    const first = await trial.apply(kind, { metadata: { name: "a" }, spec: { size: 1 } });
    assert.deepEqual(await trial.apply(kind, { metadata: { name: "a" }, spec: { size: 1 } }), first);
  }),
  contractCase("instance: generation stays when only metadata changes", async (trial) => {
    const kind = await defineKind(trial);
    await trial.create(kind, { metadata: { name: "a" }, spec: { one: 1 } });
    const patched = await trial.patch(kind, "a", "merge", { metadata: { labels: { one: "1" } } });
    assert.equal(patched.metadata?.generation, 1);
  }),
  contractCase("instance: another manager's value conflicts", async (trial) => {
    const kind = await defineKind(trial, { spec: sized });
    await trial.apply(kind, { metadata: { name: "a" }, spec: { size: 1 } });
    const other = trial.apply(kind, { metadata: { name: "a" }, spec: { size: 2 } }, { fieldManager: "beta" });
    await refused(other, { status: 409, reason: "Conflict", causes: ["FieldManagerConflict .spec.size"] });
  }),
  contractCase("instance: list types of the schema decide how lists merge", async (trial) => {
    const kind = await defineKind(trial, { spec: rules });
    const spec = (name: string) => ({ rules: [{ name, value: name }], tags: [name] });
    await trial.apply(kind, { metadata: { name: "a" }, spec: { ...spec("one"), steps: ["one"] } });
    const both = await trial.apply(
      kind,
      { metadata: { name: "a" }, spec: spec("two") },
      { fieldManager: "beta" },
    );
    assert.deepEqual(at(both, "spec.tags"), ["one", "two"]);
    assert.deepEqual(at(both, "spec.rules"), [
      { name: "one", value: "one" },
      { name: "two", value: "two" },
    ]);
    assert.deepEqual(ownedFields(both, "beta"), [
      "spec.rules[name=two].",
      "spec.rules[name=two].name",
      "spec.rules[name=two].value",
      'spec.tags["two"]',
    ]);
  }),
  contractCase("instance: a list without a list type is atomic", async (trial) => {
    const kind = await defineKind(trial, { spec: rules });
    const withSteps = (...steps: readonly string[]) => ({ metadata: { name: "a" }, spec: { steps } });
    await trial.apply(kind, withSteps("one"));
    await refused(trial.apply(kind, withSteps("one", "two"), { fieldManager: "beta" }), {
      status: 409,
      reason: "Conflict",
      causes: ["FieldManagerConflict .spec.steps"],
    });
  }),
  contractCase("instance: unknown fields are pruned on create", async (trial) => {
    const kind = await defineKind(trial, { spec: sized });
    const made = await trial.create(kind, {
      metadata: { name: "a" },
      spec: { size: 1, nonsense: 1 },
      other: {},
    });
    assert.deepEqual(at(made, "spec"), { size: 1 });
    assert.equal(at(made, "other"), undefined);
  }),
  contractCase("instance: strict validation refuses unknown fields", async (trial) => {
    const kind = await defineKind(trial, { spec: sized });
    const odd = { metadata: { name: "a" }, spec: { size: 1, nonsense: 1 } };
    await refused(trial.create(kind, odd, { fieldValidation: "Strict" }), {
      status: 400,
      reason: "BadRequest",
      message: /strict decoding error: unknown field "spec\.nonsense"/,
    });
  }),
  contractCase("instance: an apply of an unknown field is refused", async (trial) => {
    const kind = await defineKind(trial, { spec: sized });
    await refused(trial.apply(kind, { metadata: { name: "a" }, spec: { nonsense: 1 } }), {
      status: 500,
      reason: "",
      message: /\.spec\.nonsense: field not declared in schema/,
    });
  }),
  contractCase("instance: a schema that preserves unknown fields keeps them", async (trial) => {
    const kind = await defineKind(trial);
    const applied = await trial.apply(kind, { metadata: { name: "a" }, spec: { any: { thing: [1, "2"] } } });
    assert.deepEqual(at(applied, "spec"), { any: { thing: [1, "2"] } });
  }),
  contractCase("instance: what the schema forbids is invalid, field by field", async (trial) => {
    const kind = await defineKind(trial, { spec: limited });
    const create = (spec: object) => trial.create(kind, { metadata: { name: "a" }, spec });
    await invalid(create({}), ["FieldValueRequired spec.color"]);
    await invalid(create({ color: "blue" }), ["FieldValueNotSupported spec.color"]);
    await invalid(create({ color: "red", size: 0 }), ["FieldValueInvalid spec.size"]);
    await invalid(create({ color: "red", size: 10 }), ["FieldValueInvalid spec.size"]);
    await invalid(create({ color: "red", code: "A1" }), ["FieldValueInvalid spec.code"]);
    await invalid(create({ color: "red", code: "abcdef" }), ["FieldValueTooLong spec.code"]);
  }),
  contractCase("instance: a value of the wrong type is invalid", async (trial) => {
    const kind = await defineKind(trial, { spec: sized });
    await refused(trial.create(kind, { metadata: { name: "a" }, spec: { size: "big" } }), {
      status: 422,
      reason: "Invalid",
      causes: ["FieldValueTypeInvalid spec.size"],
    });
  }),
  contractCase(
    "instance: a null where none is allowed is dropped by a create, refused by an apply",
    async (trial) => {
      const kind = await defineKind(trial, { spec: sized });
      const made = await trial.create(kind, { metadata: { name: "a" }, spec: { color: null } });
      assert.deepEqual(at(made, "spec"), {});
      await invalid(trial.apply(kind, { metadata: { name: "b" }, spec: { color: null } }), [
        "FieldValueTypeInvalid spec.color",
      ]);
    },
  ),
  contractCase(
    "instance: a list that its applier empties and an updater still owns turns to null",
    async (trial) => {
      const kind = await defineKind(trial, { spec: rules });
      const withTags = (...tags: readonly string[]) => ({ metadata: { name: "a" }, spec: { tags } });
      await trial.create(kind, withTags(), { fieldManager: "editor" });
      await trial.apply(kind, withTags("one"), { force: true });
      await invalid(trial.apply(kind, { metadata: { name: "a" }, spec: {} }), [
        "FieldValueTypeInvalid spec.tags",
      ]);
    },
  ),
  contractCase("instance: defaults of the schema are filled in and belong to nobody", async (trial) => {
    const spec = { default: {}, properties: { size: { type: "integer", default: 3 } } };
    const kind = await defineKind(trial, { spec });
    const applied = await trial.apply(kind, { metadata: { name: "a" } });
    assert.deepEqual(at(applied, "spec"), { size: 3 });
    assert.deepEqual(managedBy(applied, "alpha"), []);
  }),
  contractCase("instance: with a status endpoint, each side leaves the other's fields", async (trial) => {
    const kind = await defineKind(trial, { subresources: { status: {} } });
    const made = await trial.create(kind, { metadata: { name: "a" }, spec: { one: 1 }, status: { two: 2 } });
    assert.equal(at(made, "status"), undefined);
    const patch = { spec: { one: 5 }, status: { two: 2 }, metadata: { labels: { one: "1" } } };
    const reported = await trial.patch(kind, "a", "merge", patch, { subresource: "status" });
    assert.deepEqual(at(reported, "spec"), { one: 1 });
    assert.deepEqual(at(reported, "status"), { two: 2 });
    assert.equal(reported.metadata?.labels, undefined);
    assert.equal(reported.metadata?.generation, 1);
  }),
  contractCase("instance: without a status endpoint, status is a field like others", async (trial) => {
    const kind = await defineKind(trial);
    const made = await trial.create(kind, { metadata: { name: "a" }, status: { two: 2 } });
    assert.deepEqual(at(made, "status"), { two: 2 });
    const { status } = await trial.send({ method: "GET", path: trial.path(kind, "a", "status") });
    assert.equal(status, 404);
  }),
  contractCase("instance: a scale endpoint maps to the paths in the definition", async (trial) => {
    const scale = { specReplicasPath: ".spec.replicas", statusReplicasPath: ".status.replicas" };
    const kind = await defineKind(trial, { subresources: { status: {}, scale } });
    await trial.create(kind, { metadata: { name: "a" }, spec: { replicas: 2 } });
    const shown = await trial.answer({ method: "GET", path: trial.path(kind, "a", "scale") });
    assert.equal(at(shown, "spec.replicas"), 2);
    await trial.patch(kind, "a", "merge", { spec: { replicas: 4 } }, { subresource: "scale" });
    assert.equal(at(await trial.read(kind, "a"), "spec.replicas"), 4);
  }),
  contractCase("instance: lists carry the type of every item", async (trial) => {
    const kind = await defineKind(trial);
    await trial.create(kind, { metadata: { name: "a" } });
    const { body } = await trial.send({ method: "GET", path: trial.path(kind) });
    assert.equal(at(body, "kind"), "WidgetList");
    assert.equal(at(body, "items.0.kind"), "Widget");
    assert.equal(at(body, "items.0.apiVersion"), `${kind.group}/v1`);
  }),
  contractCase("instance: merge and JSON patches work, strategic ones are refused", async (trial) => {
    const kind = await defineKind(trial);
    await trial.create(kind, { metadata: { name: "a" }, spec: { one: 1 } });
    await trial.patch(kind, "a", "merge", { spec: { two: 2 } });
    const patched = await trial.patch(kind, "a", "json", [{ op: "remove", path: "/spec/one" }]);
    assert.deepEqual(at(patched, "spec"), { two: 2 });
    await refused(trial.patch(kind, "a", "strategic", { spec: {} }), {
      status: 415,
      reason: "UnsupportedMediaType",
    });
  }),
  contractCase("instance: watches, selectors and finalizers work as for built-in kinds", async (trial) => {
    const kind = await defineKind(trial);
    const { resourceVersion } = await trial.list(kind);
    const watch = trial.watch(kind, { resourceVersion, labelSelector: "in=yes" });
    const metadata = { name: "a", labels: { in: "yes" }, finalizers: ["contract.example/hold"] };
    await trial.create(kind, { metadata });
    assert.deepEqual(await trial.delete(kind, "a"), { kind: "deleting" });
    await trial.patch(kind, "a", "merge", { metadata: { finalizers: null } });
    const seen = (await watch.take(3)).map(describeEvent);
    assert.deepEqual(seen, ["ADDED a", "MODIFIED a", "DELETED a"]);
  }),
  contractCase("instance: an update needs the version that it is based on", async (trial) => {
    const kind = await defineKind(trial);
    await trial.create(kind, { metadata: { name: "a" }, spec: { one: 1 } });
    await refused(trial.update(kind, { metadata: { name: "a" }, spec: { one: 2 } }), {
      status: 422,
      reason: "Invalid",
      causes: ["FieldValueInvalid metadata.resourceVersion"],
      message: /must be specified for an update/,
    });
  }),
  contractCase("instance: its metadata is checked like any other", async (trial) => {
    const kind = await defineKind(trial);
    await invalid(trial.create(kind, { metadata: { name: "Not_A_Name" } }), [
      "FieldValueInvalid metadata.name",
    ]);
    await invalid(trial.create(kind, { metadata: { name: "a", labels: { one: "not a value" } } }), [
      "FieldValueInvalid metadata.labels",
    ]);
  }),
  contractCase("instance: a cluster-wide kind has no namespaces", async (trial) => {
    const kind = { ...customKind(trial), namespaced: false };
    const definition = definitionOf(kind);
    await trial.create(customResourceDefinitions, definition);
    trial.after(() => trial.delete(customResourceDefinitions, definition.metadata?.name ?? ""));
    const made = await eventually("it is served", () => trial.apply(kind, { metadata: { name: "a" } }));
    assert.equal(made.metadata?.namespace, undefined);
  }),
  contractCase("instance: kinds and groups come and go in discovery", async (trial) => {
    const kind = await defineKind(trial);
    await eventually("the group is listed", async () => {
      const groups = await trial.answer({ method: "GET", path: "/apis" });
      const names = (at(groups, "groups") as readonly { readonly name: string }[]).map(({ name }) => name);
      assert.ok(names.includes(kind.group), "not yet");
    });
    const resources = await trial.answer({ method: "GET", path: `/apis/${kind.group}/v1` });
    assert.equal(at(resources, "resources.0.name"), "widgets");
    assert.equal(at(resources, "resources.0.kind"), "Widget");
    assert.equal(at(resources, "resources.0.namespaced"), true);
  }),
  contractCase("cilium: where its policies are installed, a policy is taken", async (trial) => {
    const installed = await trial.find(customResourceDefinitions, "ciliumnetworkpolicies.cilium.io");
    if (installed === undefined) return;
    const spec = {
      endpointSelector: { matchLabels: { app: "a" } },
      ingress: [
        {
          fromEndpoints: [{ matchLabels: { app: "b" } }],
          toPorts: [{ ports: [{ port: "8080", protocol: "TCP" }] }],
        },
      ],
    };
    const applied = await trial.apply(ciliumNetworkPolicies, { metadata: { name: "a" }, spec });
    assert.deepEqual(at(applied, "spec"), spec);
    const again = await trial.apply(ciliumNetworkPolicies, { metadata: { name: "a" }, spec });
    assert.equal(again.metadata?.resourceVersion, applied.metadata?.resourceVersion);
  }),
];
