import assert from "node:assert/strict";
import { test } from "node:test";
import { policySpec } from "../../../test/support/policy-messages.ts";
import { sentinelSpec } from "../../../test/support/sentinel-messages.ts";
import { testSeal } from "../../../test/support/test-seal.ts";
import { ciliumNetworkPolicies } from "../../kube/resources.ts";
import type { KubeObject } from "../../kube/types.ts";
import { annotationKeys } from "../../model/labels.ts";
import type { SealedIds } from "../../model/seal.ts";
import { desiredIngressPolicy } from "../deployment/ingress-policy.ts";
import { desiredGossipPolicy } from "../sentinel/desired.ts";
import { desiredPolicy } from "./desired.ts";
import { judgePolicy, projectPolicy } from "./projections.ts";

/** An applied manifest as the API server stores it. */
function live(manifest: KubeObject): KubeObject {
  const labels = Object.keys(manifest.metadata?.labels ?? {}).map((key) => [`f:${key}`, {}]);
  const fieldsV1 = { "f:metadata": { "f:labels": Object.fromEntries(labels) } };
  const managedFields = [{ manager: "krane", operation: "Apply", fieldsV1 }];
  return { ...manifest, metadata: { ...manifest.metadata, uid: "uid-1", managedFields } };
}

function sealed(manifest: KubeObject, ids: SealedIds): KubeObject {
  const { name = "", namespace } = manifest.metadata ?? {};
  const text = testSeal.write({ kind: ciliumNetworkPolicies, namespace, name }, ids);
  const annotations = { ...manifest.metadata?.annotations, [annotationKeys.seal]: text };
  return live({ ...manifest, metadata: { ...manifest.metadata, annotations } });
}

test("a sealed policy is ours, and known by the id in its seal, whatever its label says", () => {
  const policy = sealed(desiredPolicy(policySpec()), { id: "net_1a2B3c4D" });
  const edited = { ...policy.metadata?.labels, "unkey.com/networkpolicy.id": "net_edited" };
  for (const labels of [policy.metadata?.labels ?? {}, edited, {}]) {
    const metadata = { ...policy.metadata, labels };
    const seen = projectPolicy({ metadata }, testSeal);
    assert.deepEqual([seen.policyId, seen.ownership.kind], ["net_1a2B3c4D", "ours"]);
    assert.equal(judgePolicy(seen, "net_other").kind, "other-id");
  }
});

test("no message about policies may touch a sealed policy of an environment or a sentinel", () => {
  const environment = { namespace: "acme", workspaceId: "ws_1", environmentId: "env_1" };
  const ingress = sealed(desiredIngressPolicy(environment, [80]), { environmentId: "env_1" });
  assert.equal(projectPolicy(ingress, testSeal).ownership.kind, "foreign");
  const gossip = projectPolicy(sealed(desiredGossipPolicy(sentinelSpec()), { id: "se_1" }), testSeal);
  assert.equal(judgePolicy(gossip, "net_1a2B3c4D").kind, "other-id");
});

test("a policy of the control plane without a seal is known by its id", () => {
  const seen = projectPolicy(live(desiredPolicy(policySpec())), testSeal);
  assert.deepEqual(
    [seen.namespace, seen.name, seen.uid, seen.policyId, seen.ownership.kind, seen.deleting],
    ["acme", "sentinel-ingress-to-web", "uid-1", "net_1a2B3c4D", "unsealed", false],
  );
  assert.ok(seen.manifestHash);
});

test("as an older agent leaves it, it has neither seal nor hash", () => {
  const { annotations: _, ...metadata } = desiredPolicy(policySpec()).metadata;
  const seen = projectPolicy(live({ metadata }), testSeal);
  assert.deepEqual([seen.ownership.kind, seen.manifestHash], ["unsealed", undefined]);
});

test("no message about policies may touch the policies that krane makes by itself", () => {
  const environment = { namespace: "acme", workspaceId: "ws_1", environmentId: "env_1" };
  for (const policy of [desiredIngressPolicy(environment, [80]), desiredGossipPolicy(sentinelSpec())]) {
    assert.deepEqual(projectPolicy(live(policy), testSeal).ownership, {
      kind: "foreign",
      reason: "label unkey.com/networkpolicy.id is absent",
    });
  }
});

test("a policy that somebody else made is not ours, whatever its labels", () => {
  const { metadata } = desiredPolicy(policySpec());
  assert.equal(projectPolicy({ metadata }, testSeal).ownership.kind, "foreign");
  assert.equal(projectPolicy({}, testSeal).ownership.kind, "foreign");
});

test("an id that krane applied is the identity of a policy", () => {
  const seen = projectPolicy(live(desiredPolicy(policySpec())), testSeal);
  assert.equal(judgePolicy(seen, "net_1a2B3c4D").kind, "unsealed");
  assert.equal(judgePolicy(seen, "net_other").kind, "other-id");
});

test("an id that somebody edited or removed is drift of krane's own policy, not another policy", () => {
  const policy = live(desiredPolicy(policySpec()));
  const labels = { ...policy.metadata?.labels };
  const record = { manager: "krane", operation: "Apply", fieldsV1: { "f:metadata": { "f:labels": {} } } };
  const edited = { ...labels, "unkey.com/networkpolicy.id": "net_edited" };
  const { "unkey.com/networkpolicy.id": _, ...removed } = labels;
  for (const now of [edited, removed]) {
    const metadata = { ...policy.metadata, labels: now, managedFields: [record] };
    const seen = projectPolicy({ ...policy, metadata }, testSeal);
    assert.deepEqual([seen.policyId, judgePolicy(seen, "net_1a2B3c4D").kind], [undefined, "unsealed"]);
  }
});
