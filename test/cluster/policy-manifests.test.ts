import { testSeal } from "../support/test-seal.ts";
// The policies of the control plane meet a real API server and the real definition of
// CiliumNetworkPolicy: what krane writes is accepted to the last field and kept as it was sent, and what
// an older agent left is taken over in place.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { desiredPolicy } from "../../src/kinds/policy/desired.ts";
import { projectPolicy } from "../../src/kinds/policy/projections.ts";
import type { KubeObject } from "../../src/kube/types.ts";
import { clusterUnderTest } from "../support/cluster-under-test.ts";
import { assertKeptAsSent, createManifestApplier, writeOf } from "../support/manifest-applier.ts";
import { jsonBytes, policyDocument, policySpec } from "../support/policy-messages.ts";

const cluster = clusterUnderTest();
const { apply, applied, takenOver } = createManifestApplier(cluster);
const golden = fileURLToPath(new URL("../../testdata/policy/", import.meta.url));

before(() => cluster.empty());

for (const name of readdirSync(golden).sort()) {
  test(`the manifests of ${name} are accepted, and kept as they were sent`, async () => {
    const manifests: readonly KubeObject[] = JSON.parse(
      readFileSync(`${golden}${name}/manifests.json`, "utf8"),
    );
    for (const manifest of manifests) {
      const live = await applied(manifest);
      const again = await applied(manifest);
      assert.equal(writeOf(again), writeOf(live), "applied twice, written once");
      assertKeptAsSent(again, manifest);
      if (live.kind === "CiliumNetworkPolicy")
        assert.equal(projectPolicy(live, testSeal).ownership.kind, "unsealed");
    }
  });
}

test("a field that Cilium does not know would have been refused", async (t) => {
  const k8sNamespace = await cluster.freshNamespace(t);
  const spec = { ...policyDocument.spec, ingres: [] };
  const policy = jsonBytes({ ...policyDocument, spec });
  assert.ok((await apply(desiredPolicy(policySpec({ k8sNamespace, policy })))).status >= 400);
  assert.equal((await apply(desiredPolicy(policySpec({ k8sNamespace })))).status, 201);
});

test("a policy that asks for finalizers, owners and another place gets none of them", async (t) => {
  const k8sNamespace = await cluster.freshNamespace(t);
  const metadata = {
    name: "elsewhere",
    namespace: "kube-system",
    finalizers: ["example.com/stay"],
    ownerReferences: [{ apiVersion: "v1", kind: "Namespace", name: "default", uid: "1" }],
    labels: { "app.kubernetes.io/managed-by": "somebody" },
  };
  const policy = jsonBytes({ ...policyDocument, metadata });
  const live = await applied(desiredPolicy(policySpec({ k8sNamespace, policy })) as KubeObject);
  assert.deepEqual(
    [
      live.metadata?.namespace,
      live.metadata?.name,
      live.metadata?.finalizers,
      live.metadata?.ownerReferences,
    ],
    [k8sNamespace, "sentinel-ingress-to-web", undefined, undefined],
  );
  assert.equal(live.metadata?.labels?.["app.kubernetes.io/managed-by"], "krane");
});

test("a policy as an older agent leaves it is taken over in place", async (t) => {
  const namespace = await cluster.freshNamespace(t);
  const original = await applied({
    ...policyDocument,
    metadata: {
      name: "sentinel-ingress-to-web",
      namespace,
      labels: {
        "app.kubernetes.io/managed-by": "krane",
        "app.kubernetes.io/component": "ciliumnetworkpolicy",
        "unkey.com/networkpolicy.id": "net_1a2B3c4D",
      },
    },
  } as KubeObject);
  const seen = projectPolicy(original, testSeal);
  assert.deepEqual(
    [seen.ownership.kind, seen.policyId, seen.manifestHash],
    ["unsealed", "net_1a2B3c4D", undefined],
  );

  const manifest = desiredPolicy(policySpec({ k8sNamespace: namespace })) as KubeObject;
  const ours = await takenOver(manifest, original);
  assert.equal(ours.metadata?.uid, original.metadata?.uid, "the same object");
  assertKeptAsSent(ours, manifest);
});

test("a rule that went from the message goes from the cluster", async (t) => {
  const k8sNamespace = await cluster.freshNamespace(t);
  const both = jsonBytes({ ...policyDocument, specs: [policyDocument.spec] });
  await applied(desiredPolicy(policySpec({ k8sNamespace, policy: both })) as KubeObject);
  const manifest = desiredPolicy(policySpec({ k8sNamespace }));
  const live = await applied(manifest);
  assert.deepEqual([live.spec, live.specs], [manifest.spec, undefined]);
});
