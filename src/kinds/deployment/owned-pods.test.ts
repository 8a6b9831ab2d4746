import assert from "node:assert/strict";
import { test } from "node:test";
import { deploymentSpec } from "../../../test/support/deployment-messages.ts";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { ownPod, ownReplicaSet } from "../../../test/support/own-workload.ts";
import { testSeal } from "../../../test/support/test-seal.ts";
import { PodReplacement } from "../../engine/pod-replacement.ts";
import type { CacheEntry } from "../../kube/object-cache.ts";
import { replicaSets } from "../../kube/resources.ts";
import { annotationKeys } from "../../model/labels.ts";
import { sealedIdsOf } from "../../model/seal.ts";
import { OwnedPods } from "./owned-pods.ts";
import { projectPod, projectReplicaSet } from "./projections.ts";

const budget = { budgetObjects: 3, budgetFraction: 0.2, budgetWindowMs: 600_000 };

function entry<P>(key: string, uid: string, value: P): CacheEntry<P> {
  return { key, uid, resourceVersion: "1", value };
}

/** The pods of a ReplicaSet with this seal; one of them sees the processes of its node. */
function podsOf(seal: string | undefined): OwnedPods {
  const set = ownReplicaSet();
  const annotations = {
    ...set.metadata?.annotations,
    ...(seal !== undefined && { [annotationKeys.seal]: seal }),
  };
  const sealed = { ...set, metadata: { ...set.metadata, annotations } };
  const owner = entry("acme/web", "rs-uid", projectReplicaSet(sealed, testSeal));
  const pod = ownPod();
  const weak = { ...pod, spec: { containers: [], ...pod.spec, hostPID: true } };
  const made = [entry("acme/web-1", "1", projectPod(pod)), entry("acme/web-2", "2", projectPod(weak))];
  const replacement = new PodReplacement(budget, new FakeClock());
  const cache = { size: 2, byIndex: (_: string, uid: string) => (uid === "rs-uid" ? made : []) };
  const readiness = () => ({ ready: 1, total: 2 });
  const deps = { replicaSets: { get: () => owner }, pods: { cache }, replacement, readiness };
  return new OwnedPods("acme/web", { replicas: 2, version: 1n }, deps);
}

test("pods are judged if the seal proves that their ReplicaSet is krane's", () => {
  const spec = deploymentSpec({ deploymentId: "d_1", environmentId: "env_1" });
  const seal = testSeal.write(
    { kind: replicaSets, namespace: spec.namespace, name: spec.name },
    sealedIdsOf(spec, "d_1"),
    "",
  );
  const pods = podsOf(seal);
  assert.ok(pods.hasWeak());
  assert.deepEqual(
    pods.members().map(({ ref, weakness }) => [ref.name, weakness?.what]),
    [
      ["web-1", undefined],
      ["web-2", "hostPID"],
    ],
  );
});

test("pods of a ReplicaSet without a valid seal are not judged, whatever its labels say", () => {
  for (const seal of [undefined, "forged"]) {
    const pods = podsOf(seal);
    assert.deepEqual([pods.hasWeak(), pods.members()], [false, []]);
    assert.deepEqual(pods.replacement.next(pods), { kind: "nothing" });
  }
});
