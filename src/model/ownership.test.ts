import assert from "node:assert/strict";
import { test } from "node:test";
import type { ManagedFieldsEntry } from "../kube/types.ts";
import { judgeIdentity, judgeOwnership, type Ownership, rememberOwnership } from "./ownership.ts";

const missing = { kind: "missing" } as const;
const applied: ManagedFieldsEntry = { manager: "krane", operation: "Apply", fieldsType: "FieldsV1" };
const managed = { "app.kubernetes.io/managed-by": "krane" };
const gossip = { "app.kubernetes.io/component": "gossip-lan", "unkey.com/sentinel.id": "se_1" };

const kubelet: ManagedFieldsEntry = { manager: "kubelet", operation: "Update", subresource: "status" };

for (const [what, metadata, expected] of [
  ["labelled and applied by krane", { labels: managed, managedFields: [kubelet, applied] }, "unsealed"],
  ["gossip as older agents left it", { labels: gossip, managedFields: [applied] }, "unsealed"],
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
    assert.equal(judgeOwnership(missing, metadata).kind, expected);
  });
}

test("a foreign object has a reason", () => {
  const reasonOf = (verdict: Ownership) => (verdict.kind === "ours" ? "" : verdict.reason);
  assert.equal(reasonOf(judgeOwnership(missing, {})), "label app.kubernetes.io/managed-by is absent");
  assert.equal(
    reasonOf(judgeOwnership(missing, { labels: { "app.kubernetes.io/managed-by": "Helm" } })),
    'label app.kubernetes.io/managed-by is "Helm"',
  );
  assert.equal(
    reasonOf(judgeOwnership(missing, { labels: managed })),
    "field manager krane never applied it",
  );
});

test("an object of krane's with another id is not adopted", () => {
  const marked = judgeOwnership(missing, { labels: managed, managedFields: [applied] });
  const judge = (live: string | undefined) =>
    judgeIdentity(marked, { what: "deployment", live, wanted: "d_1" });
  assert.deepEqual(judge("d_1"), { kind: "unsealed", reason: "it has no seal" });
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
  const foreign = judgeOwnership(missing, {});
  assert.equal(judgeIdentity(foreign, { what: "deployment", live: "d_1", wanted: "d_1" }), foreign);
});

test("a valid seal makes an object krane's without any mark", () => {
  const reading = { kind: "valid", keyId: "ab12", isCurrent: true, isAdopted: false, ids: {} } as const;
  const expected = { kind: "ours", isOutdated: false, isAdopted: false };
  assert.deepEqual(judgeOwnership(reading, {}), expected);
  assert.deepEqual(judgeOwnership({ ...reading, isCurrent: false }, {}), {
    ...expected,
    isOutdated: true,
    keyId: "ab12",
  });
  assert.deepEqual(judgeOwnership({ ...reading, isAdopted: true }, {}), { ...expected, isAdopted: true });
});

test("an object of another region or key is foreign, whatever its marks", () => {
  const metadata = { labels: managed, managedFields: [applied] };
  assert.deepEqual(judgeOwnership({ kind: "other-key", keyId: "ab12" }, metadata), {
    kind: "foreign",
    reason: 'it is sealed with the unknown key "ab12"',
    seal: "other-key",
  });
  assert.deepEqual(judgeOwnership({ kind: "other-region", region: "eu" }, metadata), {
    kind: "foreign",
    reason: 'it belongs to the region "eu"',
    seal: "other-region",
  });
});

test("a broken seal counts as none", () => {
  const metadata = { labels: managed, managedFields: [applied] };
  assert.equal(judgeOwnership({ kind: "broken" }, metadata).kind, "unsealed");
  assert.deepEqual(judgeOwnership({ kind: "broken" }, { labels: managed }), {
    kind: "foreign",
    reason: "its seal is not valid, and field manager krane never applied it",
    seal: "broken",
  });
});

test("a field that nobody can edit is a mark, unless the seal is broken", () => {
  assert.equal(judgeOwnership(missing, {}, true).kind, "unsealed");
  assert.equal(judgeOwnership({ kind: "broken" }, {}, true).kind, "foreign");
  assert.equal(judgeOwnership({ kind: "other-key", keyId: "ab12" }, {}, true).kind, "foreign");
});

test("an object that had a valid seal stays krane's when everything is removed, but not with another krane's seal", () => {
  const reading = { kind: "valid", keyId: "ab12", isCurrent: true, isAdopted: false, ids: {} } as const;
  const ours = judgeOwnership(reading, {});
  const stripped = rememberOwnership(judgeOwnership(missing, {}), ours);
  assert.deepEqual(stripped, { kind: "unsealed", reason: "its seal and krane's marks were removed" });
  assert.equal(rememberOwnership(judgeOwnership({ kind: "broken" }, {}), stripped), stripped);
  assert.equal(rememberOwnership(ours, stripped), ours);
  const others = judgeOwnership({ kind: "other-key", keyId: "cd34" }, {});
  assert.equal(rememberOwnership(others, ours), others);
  const unsealed = judgeOwnership(missing, { labels: managed, managedFields: [applied] });
  const foreign = judgeOwnership(missing, {});
  assert.equal(rememberOwnership(foreign, unsealed), foreign);
});
