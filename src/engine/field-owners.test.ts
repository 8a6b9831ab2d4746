import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "../kube/types.ts";
import { fieldText, findChangedFields } from "./field-changes.ts";
import { ownerOfField } from "./field-owners.ts";

const replicas = { "f:spec": { "f:replicas": {} } };
const own = { manager: "krane", operation: "Apply", time: "2026-01-01T00:00:00Z" };
const replicasPath = ["spec", "replicas"];

function withManagers(...managedFields: readonly object[]): KubeObject {
  const spec = {
    replicas: 5,
    selector: { app: "web" },
    containers: [
      { name: "web", image: "a" },
      { name: "evil", image: "b" },
    ],
  };
  return { metadata: { managedFields }, spec } as KubeObject;
}

const cases: readonly (readonly [name: string, managers: readonly object[], owner: string | undefined])[] = [
  ["nobody has it", [{ ...own, fieldsV1: { "f:spec": { "f:paused": {} } } }], undefined],
  [
    "an entry of a subresource counts",
    [{ manager: "kubectl", operation: "Update", subresource: "scale", fieldsV1: replicas }],
    "kubectl",
  ],
  [
    "an entry of the status counts if it has the field, and not otherwise",
    [
      {
        manager: "kubelet",
        operation: "Update",
        subresource: "status",
        time: "2026-01-03T00:00:00Z",
        fieldsV1: {},
      },
      { manager: "odd", operation: "Update", subresource: "status", fieldsV1: replicas },
    ],
    "odd",
  ],
  [
    "the newest of several",
    [
      { manager: "first", operation: "Apply", time: "2026-01-02T00:00:00Z", fieldsV1: replicas },
      { manager: "second", operation: "Update", time: "2026-01-03T00:00:00Z", fieldsV1: replicas },
      {
        manager: "other",
        operation: "Update",
        time: "2026-01-04T00:00:00Z",
        fieldsV1: { "f:spec": { "f:x": {} } },
      },
    ],
    "second",
  ],
  [
    "another one before krane's own apply, however old",
    [
      { ...own, time: "2026-02-01T00:00:00Z", fieldsV1: replicas },
      { manager: "sharing", operation: "Apply", time: "2026-01-01T00:00:00Z", fieldsV1: replicas },
    ],
    "sharing",
  ],
  ["somebody who applied as krane", [{ ...own, fieldsV1: replicas }], "krane"],
  ["a field set that cannot be read", [{ manager: "x", operation: "Update", fieldsV1: "?" }], undefined],
];

for (const [name, managers, owner] of cases)
  test(`the owner of a field: ${name}`, () => {
    assert.equal(ownerOfField(withManagers(...managers), replicasPath)?.manager, owner);
  });

test("the owner of an item of a list, and of a map that is written as a whole", () => {
  const live = withManagers(
    {
      ...own,
      fieldsV1: { "f:spec": { "f:containers": { 'k:{"name":"web"}': { ".": {}, "f:image": {} } } } },
    },
    {
      manager: "kubectl-edit",
      operation: "Update",
      fieldsV1: { "f:spec": { "f:containers": { 'k:{"name":"evil"}': { ".": {} } } } },
    },
    { manager: "mapper", operation: "Update", fieldsV1: { "f:spec": { "f:selector": {} } } },
  );
  const manifest = {
    spec: { replicas: 5, selector: { app: "api" }, containers: [{ name: "web", image: "a" }] },
  };
  const found = findChangedFields(live, manifest as KubeObject, manifest as KubeObject).map(({ path }) => [
    fieldText(path),
    ownerOfField(live, path)?.manager,
  ]);
  assert.deepEqual(found, [
    ["spec.selector.app", "mapper"],
    ['spec.containers[name="evil"]', "kubectl-edit"],
  ]);
});
