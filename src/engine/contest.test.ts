import assert from "node:assert/strict";
import { test } from "node:test";
import { replicaSets } from "../kube/resources.ts";
import type { KubeObject, ManagedFieldsEntry } from "../kube/types.ts";
import { contestOver, contestOverDeletion } from "./contest.ts";

const ref = { namespace: "acme", name: "web" };
const manifest = {
  metadata: { ...ref, labels: { app: "web", tier: "front" } },
  spec: {
    replicas: 2,
    template: { spec: { containers: [{ name: "web", image: "web:1", args: ["a"] }] } },
  },
};
const containerSet = { "f:args": {}, "f:image": {}, "f:name": {} };
const own: ManagedFieldsEntry = {
  manager: "krane",
  operation: "Apply",
  time: "2026-01-01T00:00:00Z",
  fieldsV1: {
    "f:metadata": { "f:labels": { "f:app": {}, "f:tier": {} } },
    "f:spec": {
      "f:replicas": {},
      "f:template": { "f:spec": { "f:containers": { 'k:{"name":"web"}': { ".": {}, ...containerSet } } } },
    },
  },
};

/** krane's entry without some fields of the spec, as after somebody took them. */
function ownWithout(...steps: readonly string[]): ManagedFieldsEntry {
  const copy = structuredClone(own) as { fieldsV1: Record<string, unknown> } & ManagedFieldsEntry;
  let set: Record<string, unknown> = copy.fieldsV1;
  for (const step of steps.slice(0, -1)) set = set[step] as Record<string, unknown>;
  Reflect.deleteProperty(set, steps.at(-1) ?? "");
  return copy;
}

const replicas = { "f:spec": { "f:replicas": {} } };
const container = (set: object) => ({
  "f:spec": { "f:template": { "f:spec": { "f:containers": { 'k:{"name":"web"}': set } } } },
});
const entry = (manager: string, fieldsV1: unknown, rest: Partial<ManagedFieldsEntry> = {}) => ({
  manager,
  operation: "Update",
  time: "2026-01-02T00:00:00Z",
  fieldsV1,
  ...rest,
});

const cases: readonly {
  readonly name: string;
  readonly fields: ManagedFieldsEntry[];
  readonly says: string;
}[] = [
  {
    name: "a manager that took a field",
    fields: [ownWithout("f:spec", "f:replicas"), entry("autoscaler", replicas)],
    says: 'field manager "autoscaler" keeps changing spec.replicas of',
  },
  {
    name: "kubectl scale, which writes through a subresource",
    fields: [ownWithout("f:spec", "f:replicas"), entry("kubectl", replicas, { subresource: "scale" })],
    says: 'field manager "kubectl" keeps changing spec.replicas of',
  },
  {
    name: "a client that writes under krane's name",
    fields: [ownWithout("f:spec", "f:replicas"), entry("krane", replicas)],
    says: 'field manager "krane" keeps changing spec.replicas of',
  },
  {
    name: "the last one of two, and neither a status nor a field that krane does not send",
    fields: [
      ownWithout("f:spec", "f:replicas"),
      entry("first", replicas),
      entry("second", replicas, { time: "2026-01-03T00:00:00Z" }),
      entry("status", replicas, { subresource: "status", time: "2026-01-04T00:00:00Z" }),
      entry("other", { "f:spec": { "f:paused": {} } }, { time: "2026-01-05T00:00:00Z" }),
    ],
    says: 'field manager "second" keeps changing spec.replicas of',
  },
  {
    name: "an item of a list",
    fields: [
      ownWithout("f:spec", "f:template", "f:spec", "f:containers", 'k:{"name":"web"}', "f:image"),
      entry('evil" manager', container({ "f:image": {} })),
    ],
    says: 'field manager "evil\\" manager" keeps changing spec.template.spec.containers[web].image of',
  },
  {
    name: "a field that was removed, which leaves no manager",
    fields: [
      ownWithout("f:metadata", "f:labels", "f:tier"),
      entry("other", { "f:spec": { "f:paused": {} } }),
    ],
    says: "an unknown client keeps changing metadata.labels.tier of",
  },
  {
    name: "a client that applies as krane leaves no trace",
    fields: [own],
    says: "an unknown client keeps changing an unknown field of",
  },
];

for (const { name, fields, says } of cases)
  test(`names the other side: ${name}`, () => {
    const found: KubeObject = { metadata: { ...ref, uid: "u-1", managedFields: fields } };
    const facts = { kind: replicaSets, ref, name: "ReplicaSet acme/web", sinceMs: 0, found };
    const { reason, uid, about } = contestOver(facts, manifest);
    assert.equal(reason, `${says} ReplicaSet acme/web since 1970-01-01T00:00:00Z`);
    assert.deepEqual([uid, about], ["u-1", "repair"]);
  });

test("who deletes an object is unknown; who creates it again is whoever wrote it last", () => {
  const facts = { kind: replicaSets, ref, name: "ReplicaSet acme/web", sinceMs: 0 };
  assert.equal(
    contestOver({ ...facts, found: undefined }, manifest).reason,
    "an unknown client keeps deleting ReplicaSet acme/web since 1970-01-01T00:00:00Z",
  );
  const found = { metadata: { ...ref, uid: "u-1", managedFields: [own, entry("backup", replicas)] } };
  assert.equal(
    contestOverDeletion({ ...facts, found }).reason,
    'field manager "backup" keeps creating ReplicaSet acme/web again since 1970-01-01T00:00:00Z, although it is to be deleted',
  );
});
