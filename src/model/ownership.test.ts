import assert from "node:assert/strict";
import { test } from "node:test";
import type { ManagedFieldsEntry } from "../kube/types.ts";
import { judgeIdentity, judgeOwnership, type Ownership } from "./ownership.ts";

const applied: ManagedFieldsEntry = { manager: "krane", operation: "Apply", fieldsType: "FieldsV1" };
const managed = { "app.kubernetes.io/managed-by": "krane" };
const gossip = { "app.kubernetes.io/component": "gossip-lan", "unkey.com/sentinel.id": "se_1" };

const kubelet: ManagedFieldsEntry = { manager: "kubelet", operation: "Update", subresource: "status" };

for (const [what, metadata, expected] of [
  ["labelled and applied by krane", { labels: managed, managedFields: [kubelet, applied] }, "ours"],
  ["gossip as older agents left it", { labels: gossip, managedFields: [applied] }, "ours"],
  ["nothing known", undefined, "foreign"],
  ["the label alone", { labels: managed }, "foreign"],
  ["the manager alone", { labels: {}, managedFields: [applied] }, "foreign"],
  [
    "labelled by krane, applied by another",
    { labels: managed, managedFields: [{ ...applied, manager: "helm" }] },
    "foreign",
  ],
  [
    "krane only updated it",
    { labels: managed, managedFields: [{ ...applied, operation: "Update" }] },
    "foreign",
  ],
  [
    "krane only wrote its status",
    { labels: managed, managedFields: [{ ...applied, subresource: "status" }] },
    "foreign",
  ],
  [
    "another's label",
    { labels: { "app.kubernetes.io/managed-by": "Helm" }, managedFields: [applied] },
    "foreign",
  ],
  [
    "gossip with another's label",
    { labels: { ...gossip, "app.kubernetes.io/managed-by": "x" }, managedFields: [applied] },
    "foreign",
  ],
  [
    "gossip without an id",
    { labels: { "app.kubernetes.io/component": "gossip-lan" }, managedFields: [applied] },
    "foreign",
  ],
] as const) {
  test(`${what}: ${expected}`, () => {
    assert.equal(judgeOwnership(metadata).kind, expected);
  });
}

test("a foreign object has a reason", () => {
  const reasonOf = (verdict: Ownership) => (verdict.kind === "ours" ? "" : verdict.reason);
  assert.equal(reasonOf(judgeOwnership({})), "label app.kubernetes.io/managed-by is absent");
  assert.equal(
    reasonOf(judgeOwnership({ labels: { "app.kubernetes.io/managed-by": "Helm" } })),
    'label app.kubernetes.io/managed-by is "Helm"',
  );
  assert.equal(reasonOf(judgeOwnership({ labels: managed })), "field manager krane never applied it");
});

test("an object of krane's with another id is not adopted", () => {
  const ours = judgeOwnership({ labels: managed, managedFields: [applied] });
  const judge = (live: string | undefined) =>
    judgeIdentity(ours, { what: "deployment", live, wanted: "d_1" });
  assert.deepEqual(judge("d_1"), { kind: "ours" });
  assert.deepEqual(judge("d_2"), {
    kind: "other-id",
    reason: 'the live deployment is "d_2", but "d_1" is desired',
  });
  assert.deepEqual(judge(undefined), {
    kind: "other-id",
    reason: 'the live deployment has no id, but "d_1" is desired',
  });
});

test("a foreign object stays foreign, whatever its id", () => {
  const foreign = judgeOwnership({});
  assert.equal(judgeIdentity(foreign, { what: "deployment", live: "d_1", wanted: "d_1" }), foreign);
});
