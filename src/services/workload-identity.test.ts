import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { ReplicaSet } from "kubernetes-types/apps/v1.js";
import type { Pod } from "kubernetes-types/core/v1.js";
import { ownPod, ownReplicaSet } from "../../test/support/own-workload.ts";
import { createTestSeal, otherSealKey, testSeal } from "../../test/support/test-seal.ts";
import type { KubeApi } from "../kube/api.ts";
import { replicaSets } from "../kube/resources.ts";
import type { ResourceKind } from "../kube/types.ts";
import { annotationKeys, labelKeys } from "../model/labels.ts";
import { KnownReplicaSets } from "./known-replica-sets.ts";
import { identifyWorkload, type WorkloadRefusal } from "./workload-identity.ts";

const known =
  '{"key":"acme/web","deploymentId":"d_1","environmentId":"env_1","isSealed":false,"original":"no"}';
const provenIdentity = known.replace("false", "true");
const never = new AbortController().signal;
const subject = { namespace: "acme", serviceAccount: "default", podName: "web-1", podUid: "pod-uid" };

interface Change {
  readonly pod?: Partial<Pod>;
  readonly podMeta?: Pod["metadata"];
  readonly setMeta?: ReplicaSet["metadata"];
}

/** The reason for refusing a pod, in a cluster with these changes to it and its ReplicaSet. */
async function judged({ pod = {}, podMeta = {}, setMeta = {} }: Change): Promise<string> {
  const [own, ownSet] = [ownPod(), ownReplicaSet()];
  const objects = new Map<string, unknown>([
    ["Pod", { ...own, ...pod, metadata: { ...own.metadata, ...podMeta } }],
    ["ReplicaSet", { ...ownSet, metadata: { ...ownSet.metadata, ...setMeta } }],
  ]);
  return judgedIn(objects);
}

async function judgedIn(objects: ReadonlyMap<string, unknown>): Promise<string> {
  const api = { get: async ({ kind }: ResourceKind) => objects.get(kind) } as unknown as KubeApi;
  const known = new KnownReplicaSets({ watched: () => undefined });
  const outcome = await identifyWorkload(subject, { api, seal: testSeal, known }, never);
  return outcome.kind === "known" ? JSON.stringify(outcome.identity) : outcome.reason;
}

const podLabel = (key: string, value: string): Change => ({
  podMeta: { labels: { ...ownPod().metadata?.labels, [key]: value } },
});
const setLabel = (key: string, value: string): Change => ({
  setMeta: { labels: { ...ownReplicaSet().metadata?.labels, [key]: value } },
});
const owner = (change: object): Change => ({
  podMeta: {
    ownerReferences: (ownPod().metadata?.ownerReferences ?? []).map((each) => ({ ...each, ...change })),
  },
});

describe("the identity of a workload", () => {
  test("is found for a pod whose ReplicaSet krane applied", async () => {
    assert.equal(await judged({}), known);
  });

  test("does not need the annotations, which older agents did not write", async () => {
    const [createdAt, appliedAt] = ["2026-01-01T00:00:00Z", "2026-01-01T00:05:00Z"];
    const managedFields = [{ manager: "krane", operation: "Apply", time: appliedAt }];
    const podMeta = { annotations: {}, creationTimestamp: createdAt };
    assert.equal(await judged({ podMeta, setMeta: { managedFields } }), known);
  });

  test("is proven by the seal of the ReplicaSet, whatever its labels say", async () => {
    const ids = { id: "d_1", environmentId: "env_1" };
    const text = testSeal.write({ kind: replicaSets, namespace: "acme", name: "web" }, ids);
    const { labels, annotations } = ownReplicaSet().metadata ?? {};
    const sealed = { labels: labels ?? {}, annotations: { ...annotations, [annotationKeys.seal]: text } };
    assert.equal(await judged({ setMeta: sealed }), provenIdentity);
    assert.equal(await judged({ setMeta: { ...sealed, labels: {}, managedFields: [] } }), provenIdentity);
    const other = testSeal.write(
      { kind: replicaSets, namespace: "acme", name: "web" },
      { ...ids, id: "d_2" },
    );
    const ofOther = { annotations: { ...annotations, [annotationKeys.seal]: other } };
    assert.equal(await judged({ setMeta: ofOther }), "ReplicaSet belongs to another deployment");
  });

  test("is not proven by a seal of another region, key or name", async () => {
    const subject = { kind: replicaSets, namespace: "acme", name: "web" };
    const ids = { id: "d_1", environmentId: "env_1" };
    for (const [text, reason] of [
      [createTestSeal({ region: "other" }).write(subject, ids), "ReplicaSet is not krane's"],
      [createTestSeal({ keys: [otherSealKey] }).write(subject, ids), "ReplicaSet is not krane's"],
      [testSeal.write({ ...subject, name: "api" }, ids), known],
    ] as const) {
      const annotations = { ...ownReplicaSet().metadata?.annotations, [annotationKeys.seal]: text };
      assert.equal(await judged({ setMeta: { annotations } }), reason);
    }
  });

  const now = "2026-01-01T00:00:00Z";
  const other = { annotations: { [annotationKeys.deploymentId]: "d_2" } };
  const changes: readonly (readonly [reason: WorkloadRefusal, change: Change])[] = [
    ["pod was replaced by another with the same name", { podMeta: { uid: "another" } }],
    ["pod is being deleted", { podMeta: { deletionTimestamp: now } }],
    ["pod has terminated", { pod: { status: { phase: "Failed" } } }],
    ["pod has terminated", { pod: { status: { phase: "Succeeded" } } }],
    ["pod runs as another service account", { pod: { spec: { containers: [], serviceAccountName: "x" } } }],
    ["pod runs as another service account", { pod: { spec: { containers: [] } } }],
    ["pod is not managed by krane", podLabel(labelKeys.managedBy, "helm")],
    ["pod is not managed by krane", { podMeta: { labels: {} } }],
    ["pod has no deployment or environment label", podLabel(labelKeys.deploymentId, "")],
    ["pod has no deployment or environment label", podLabel(labelKeys.environmentId, "")],
    ["pod's deployment label and annotation differ", { podMeta: other }],
    ["pod is not controlled by a ReplicaSet", { podMeta: { ownerReferences: [] } }],
    ["pod is not controlled by a ReplicaSet", owner({ controller: false })],
    ["pod is not controlled by a ReplicaSet", owner({ kind: "StatefulSet" })],
    ["pod is not controlled by a ReplicaSet", owner({ apiVersion: "example.com/v1" })],
    ["ReplicaSet was replaced by another with the same name", owner({ uid: "another" })],
    ["ReplicaSet is being deleted", { setMeta: { deletionTimestamp: now } }],
    ["ReplicaSet is not krane's", setLabel(labelKeys.managedBy, "helm")],
    ["ReplicaSet is not krane's", { setMeta: { managedFields: [] } }],
    [
      "ReplicaSet is not krane's",
      { setMeta: { managedFields: [{ manager: "krane", operation: "Update" }] } },
    ],
    ["ReplicaSet belongs to another deployment", setLabel(labelKeys.deploymentId, "d_2")],
    [
      "ReplicaSet belongs to another deployment",
      { podMeta: { ...podLabel(labelKeys.deploymentId, "d_2").podMeta, ...other } },
    ],
    ["ReplicaSet belongs to another environment", setLabel(labelKeys.environmentId, "env_2")],
    ["ReplicaSet belongs to another environment", podLabel(labelKeys.environmentId, "env_2")],
  ];
  for (const [reason, change] of changes) {
    test(`is refused with "${reason}": ${JSON.stringify(change)}`, async () =>
      assert.equal(await judged(change), reason));
  }

  test("is refused when the pod or its ReplicaSet is gone", async () => {
    assert.equal(await judgedIn(new Map()), "pod not found");
    assert.equal(await judgedIn(new Map([["Pod", ownPod()]])), "ReplicaSet not found");
  });
});
