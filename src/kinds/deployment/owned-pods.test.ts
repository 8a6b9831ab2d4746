import assert from "node:assert/strict";
import { test } from "node:test";
import type { ReplicaSet } from "kubernetes-types/apps/v1.js";
import type { Pod } from "kubernetes-types/core/v1.js";
import { deletionBudget } from "../../../test/support/deletion-limits.ts";
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

function entry<P>(key: string, uid: string, value: P): CacheEntry<P> {
  return { key, uid, resourceVersion: "1", value };
}

const spec = deploymentSpec({ deploymentId: "d_1", environmentId: "env_1" });
const subject = { kind: replicaSets, namespace: spec.namespace, name: spec.name };
const validSeal = testSeal.write(subject, sealedIdsOf(spec, "d_1"), "");

/** The pods of a ReplicaSet with this seal; one of them sees the processes of its node. */
function podsOf(seal: string | undefined, made = [ownPod(), weakPod()], set = ownReplicaSet()): OwnedPods {
  const annotations = {
    ...set.metadata?.annotations,
    ...(seal !== undefined && { [annotationKeys.seal]: seal }),
  };
  const sealed = { ...set, metadata: { ...set.metadata, annotations } };
  const owner = entry("acme/web", "rs-uid", projectReplicaSet(sealed, testSeal));
  const entries = made.map((pod, index) => entry(`acme/web-${index + 1}`, `${index + 1}`, projectPod(pod)));
  const replacement = new PodReplacement(deletionBudget, new FakeClock());
  const cache = { size: 2, byIndex: (_: string, uid: string) => (uid === "rs-uid" ? entries : []) };
  const readiness = () => ({ ready: 1, total: 2 });
  const deps = { replicaSets: { get: () => owner }, pods: { cache }, replacement, readiness };
  return new OwnedPods("acme/web", { replicas: 2, version: 1n }, deps);
}

function weakPod(): Pod {
  const pod = ownPod();
  return { ...pod, spec: { containers: [], ...pod.spec, hostPID: true } };
}

function unsandboxed<T extends { readonly runtimeClassName?: string }>(spec: T): Omit<T, "runtimeClassName"> {
  const { runtimeClassName: _, ...rest } = spec;
  return rest;
}

test("a pod outside of the sandbox is weak if the template that it comes from asks for the sandbox", () => {
  const pod = ownPod();
  const set = ownReplicaSet();
  assert.ok(pod.spec && set.spec?.template?.spec);
  const bare: Pod = { ...pod, spec: unsandboxed(pod.spec) };
  const older: Pod = {
    ...bare,
    metadata: { ...bare.metadata, annotations: { [annotationKeys.templateHash]: "older" } },
  };
  const template = { ...set.spec.template, spec: unsandboxed(set.spec.template.spec) };
  const bareSet = { ...set, spec: { ...set.spec, template } } as ReplicaSet;
  const weaknesses = (of: OwnedPods) => of.members().map(({ weakness }) => weakness?.what);
  assert.deepEqual(weaknesses(podsOf(validSeal, [bare, older])), ["runtimeClassName is missing", undefined]);
  assert.deepEqual(weaknesses(podsOf(validSeal, [bare, pod], bareSet)), [undefined, undefined]);
});

test("pods are judged if the seal proves that their ReplicaSet is krane's", () => {
  const pods = podsOf(validSeal);
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
