import assert from "node:assert/strict";
import { test } from "node:test";
import { deploymentOfOlderAgent } from "../../../test/support/older-sentinel.ts";
import { sentinelSpec } from "../../../test/support/sentinel-messages.ts";
import { testSeal } from "../../../test/support/test-seal.ts";
import { appsDeployments, services } from "../../kube/resources.ts";
import type { KubeObject, ManagedFieldsEntry } from "../../kube/types.ts";
import { annotationKeys, labelKeys } from "../../model/labels.ts";
import { sealedIdsOf } from "../../model/seal.ts";
import {
  desiredGossipPolicy,
  desiredGossipService,
  desiredSentinelBudget,
  desiredSentinelDeployment,
  desiredSentinelService,
} from "./desired.ts";
import { projectSentinelCompanion, projectSentinelDeployment } from "./projections.ts";

const spec = sentinelSpec();
const managedFields: readonly ManagedFieldsEntry[] = [{ manager: "krane", operation: "Apply" }];

function live<T extends KubeObject>(manifest: T): T {
  return { ...manifest, metadata: { ...manifest.metadata, uid: "uid-1", managedFields } };
}

test("a Deployment is known by its selector, which nobody can edit", () => {
  const manifest = desiredSentinelDeployment(spec, { region: "local.dev" });
  const labels = { ...manifest.metadata?.labels, [labelKeys.sentinelId]: "se_edited" };
  const edited = live({ ...manifest, metadata: { ...manifest.metadata, labels } });
  const seen = projectSentinelDeployment(edited, testSeal);
  assert.deepEqual([seen.sentinelName, seen.sentinelId, seen.uid], ["gate", "se_1a2B3c4D", "uid-1"]);
  assert.equal(seen.ownership.kind, "unsealed");
  assert.ok(seen.manifestHash);
});

test("a template of the original is taken as such until the sentinel is taken over, and then by its seal only", () => {
  const subject = { namespace: "sentinel", name: "gate", uid: "uid-1" };
  const seal = (keptTemplate?: string) =>
    testSeal.write(
      { kind: appsDeployments, ...subject },
      { ...sealedIdsOf(spec, spec.sentinelId), keptTemplate },
      "uid-1",
    );
  const found = (annotations: Record<string, string>) => {
    const { metadata, ...rest } = deploymentOfOlderAgent();
    return projectSentinelDeployment(live({ ...rest, metadata: { ...metadata, annotations } }), testSeal);
  };
  const left = found({});
  assert.deepEqual([left.ownership.kind, left.original?.kept], ["unsealed", undefined]);
  assert.notEqual(left.original, undefined);
  const marked = found({ [annotationKeys.seal]: seal("h") });
  assert.deepEqual([marked.ownership.kind, marked.original?.kept], ["ours", "h"]);
  // Somebody removed the label from krane's own template, which is drift to repair.
  const edited = found({ [annotationKeys.seal]: seal(), "krane.unkey.com/kept-template": "h" });
  assert.deepEqual([edited.ownership.kind, edited.original], ["ours", undefined]);
});

for (const [what, manifest, ownerUids] of [
  ["Service", desiredSentinelService(spec, "uid-9"), ["uid-9"]],
  ["budget", desiredSentinelBudget(spec, "uid-9"), ["uid-9"]],
  ["gossip Service", desiredGossipService(spec), []],
  ["gossip policy", desiredGossipPolicy(spec), []],
] as const) {
  test(`the ${what} leads back to its sentinel`, () => {
    const seen = projectSentinelCompanion(live(manifest as KubeObject), services, testSeal);
    assert.deepEqual(
      [seen.sentinelName, seen.sentinelId, seen.namespace],
      ["gate", "se_1a2B3c4D", "sentinel"],
    );
    assert.deepEqual(seen.ownerUids, ownerUids);
    assert.equal(seen.ownership.kind, "unsealed");
    assert.ok(seen.manifestHash);
  });
}

test("gossip objects as an older agent leaves them have neither seal nor hash", () => {
  for (const manifest of [desiredGossipService(spec), desiredGossipPolicy(spec)] as readonly KubeObject[]) {
    const { [labelKeys.managedBy]: _, ...labels } = manifest.metadata?.labels ?? {};
    const { annotations: __, ...metadata } = manifest.metadata ?? {};
    const seen = projectSentinelCompanion(
      live({ ...manifest, metadata: { ...metadata, labels } }),
      services,
      testSeal,
    );
    assert.deepEqual([seen.ownership.kind, seen.manifestHash], ["unsealed", undefined]);
  }
});

test("what somebody else made under the same name is not ours", () => {
  const seen = projectSentinelCompanion(
    { metadata: { name: "gate", namespace: "sentinel" } },
    services,
    testSeal,
  );
  assert.deepEqual([seen.sentinelName, seen.ownership.kind], ["gate", "foreign"]);
});

test("of an object that says nothing, nothing is known", () => {
  const seen = projectSentinelDeployment({}, testSeal);
  assert.deepEqual([seen.name, seen.image, seen.sentinelId, seen.deleting], ["", "", undefined, false]);
  const leaving = projectSentinelCompanion(
    { metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" } },
    services,
    testSeal,
  );
  assert.equal(leaving.deleting, true);
});

test("the id of a sealed companion comes from its seal, whatever its label says", () => {
  const { metadata } = desiredSentinelService(spec, "uid-9");
  const subject = { kind: services, namespace: "sentinel", name: metadata?.name ?? "" };
  const seal = testSeal.write(subject, { id: spec.sentinelId });
  const labels = { ...metadata?.labels, [labelKeys.sentinelId]: "se_edited" };
  const annotations = { [annotationKeys.seal]: seal };
  const object = { metadata: { namespace: "sentinel", name: subject.name, labels, annotations } };
  const seen = projectSentinelCompanion(object, services, testSeal);
  assert.deepEqual([seen.sentinelId, seen.ownership.kind], [spec.sentinelId, "ours"]);
  const copied = projectSentinelCompanion(
    { metadata: { ...object.metadata, name: "other" } },
    services,
    testSeal,
  );
  assert.notEqual(copied.ownership.kind, "ours");
});
