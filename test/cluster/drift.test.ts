// Whatever anybody edits in the objects that krane writes is undone, on a real API server.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, type TestContext, test } from "node:test";
import {
  appsDeployments,
  ciliumNetworkPolicies,
  podDisruptionBudgets,
  replicaSets,
  services,
} from "../../src/kube/resources.ts";
import type { KubeObject, ResourceKind } from "../../src/kube/types.ts";
import { realServerTarget } from "../support/cluster/contract-target.ts";
import { clusterUnderTest } from "../support/cluster-under-test.ts";
import { checkAdditions, checkEdits, DriftTrial, type Json } from "../support/drift-trial.ts";
import {
  unsentDeploymentFields,
  unsentPodFields,
  unsentPolicyFields,
  unsentServiceFields,
} from "../support/unsent-fields.ts";

const cluster = clusterUnderTest();
const { transport, close } = realServerTarget(cluster);
const signal = AbortSignal.timeout(600_000);

after(() => close());

/** One object of a golden case, alone in a namespace; without pods, which would only take time. */
async function trialOf(t: TestContext, folder: string, kind: ResourceKind, index = 0): Promise<DriftTrial> {
  const namespace = await cluster.freshNamespace(t);
  const text = readFileSync(new URL(`../../testdata/${folder}/manifests.json`, import.meta.url), "utf8");
  const all: readonly KubeObject[] = JSON.parse(text);
  const found = all.filter(({ kind: name }) => name === kind.kind)[index] ?? assert.fail(`no ${kind.kind}`);
  const { ownerReferences: _, ...metadata } = found.metadata ?? {};
  const { spec, ...rest } = found as KubeObject & { spec: { replicas?: number } };
  const idle = spec.replicas === undefined ? spec : { ...spec, replicas: 0 };
  return new DriftTrial(
    kind,
    { ...rest, metadata: { ...metadata, namespace }, spec: idle } as KubeObject,
    transport,
    signal,
  );
}

const cases: readonly {
  readonly folder: string;
  readonly kind: ResourceKind;
  readonly index?: number;
  readonly parts: readonly Json[];
}[] = [
  { folder: "deployment/everything", kind: replicaSets, parts: unsentPodFields("deployment") },
  {
    folder: "sentinel/three-replicas",
    kind: appsDeployments,
    parts: [...unsentPodFields("sentinel"), ...unsentDeploymentFields],
  },
  { folder: "sentinel/three-replicas", kind: services, parts: unsentServiceFields },
  { folder: "sentinel/three-replicas", kind: services, index: 1, parts: unsentServiceFields },
  { folder: "sentinel/three-replicas", kind: podDisruptionBudgets, parts: [] },
  { folder: "sentinel/three-replicas", kind: ciliumNetworkPolicies, parts: unsentPolicyFields },
  { folder: "deployment/everything", kind: ciliumNetworkPolicies, parts: unsentPolicyFields },
  { folder: "policy/deny-all", kind: ciliumNetworkPolicies, parts: unsentPolicyFields },
];

for (const { folder, kind, index = 0, parts } of cases) {
  const name = `${kind.kind} ${index} of ${folder}`;

  test(`${name}: every field that krane sends is restored`, async (t) => {
    const accepted = await checkEdits(await trialOf(t, folder, kind, index));
    t.diagnostic(`${accepted} edits`);
    assert.ok(accepted >= 5, `only ${accepted} edits were accepted`);
  });

  if (parts.length > 0)
    test(`${name}: every field that krane does not send is removed`, async (t) => {
      const accepted = await checkAdditions(await trialOf(t, folder, kind, index), parts);
      t.diagnostic(`${accepted} edits`);
      assert.ok(accepted >= parts.length / 2, `only ${accepted} edits were accepted`);
    });
}
