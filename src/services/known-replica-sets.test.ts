import assert from "node:assert/strict";
import { test } from "node:test";
import type { ReplicaSet } from "kubernetes-types/apps/v1.js";
import type { Pod } from "kubernetes-types/core/v1.js";
import { ownPod, ownReplicaSet } from "../../test/support/own-workload.ts";
import { testSeal } from "../../test/support/test-seal.ts";
import type { WatchedObject } from "../engine/controller-definition.ts";
import type { KubeApi } from "../kube/api.ts";
import { replicaSets } from "../kube/resources.ts";
import type { ResourceKind } from "../kube/types.ts";
import { annotationKeys } from "../model/labels.ts";
import { KnownReplicaSets } from "./known-replica-sets.ts";
import { identifyWorkload } from "./workload-identity.ts";

const never = new AbortController().signal;
const subject = { namespace: "acme", serviceAccount: "default", podName: "web-1", podUid: "pod-uid" };
const ids = { environmentId: "env_1", id: "d_1" };
const shown: WatchedObject = { uid: "rs-uid", resourceVersion: "7", generation: 1, hash: "h" };

/** A cluster with a sealed ReplicaSet and its pod, which counts what is read. */
class World {
  pod: Pod = ownPod();
  replicaSet: ReplicaSet | undefined = sealedSet();
  watched: WatchedObject | undefined = shown;
  readonly reads = { Pod: 0, ReplicaSet: 0 };
  private readonly known = new KnownReplicaSets({ watched: () => this.watched });

  /** "known", or why not. */
  async identify(): Promise<string> {
    const api = {
      get: async ({ kind }: ResourceKind) => {
        this.reads[kind as keyof typeof this.reads] += 1;
        return kind === "Pod" ? this.pod : this.replicaSet;
      },
    } as unknown as KubeApi;
    const outcome = await identifyWorkload(subject, { api, seal: testSeal, known: this.known }, never);
    return outcome.kind === "known" ? outcome.kind : outcome.reason;
  }
}

function sealedSet(change: ReplicaSet["metadata"] = {}): ReplicaSet {
  const own = ownReplicaSet();
  const seal = testSeal.write({ kind: replicaSets, namespace: "acme", name: "web" }, ids);
  const annotations = { ...own.metadata?.annotations, [annotationKeys.seal]: seal };
  return { ...own, metadata: { ...own.metadata, annotations, resourceVersion: "7", ...change } };
}

test("the ReplicaSet is read once while the watch shows the same content, and the pod on every call", async () => {
  const world = new World();
  for (let call = 0; call < 3; call++) assert.equal(await world.identify(), "known");
  // Its status has changed.
  world.watched = { ...shown, resourceVersion: "9" };
  assert.equal(await world.identify(), "known");
  assert.deepEqual(world.reads, { Pod: 4, ReplicaSet: 1 });
  world.pod = {
    ...world.pod,
    metadata: { ...world.pod.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" },
  };
  assert.equal(await world.identify(), "pod is being deleted");
});

const changes: Readonly<Record<string, WatchedObject | undefined>> = {
  "does not show it, or does not work": undefined,
  "shows another spec": { ...shown, generation: 2 },
  "shows other labels or annotations": { ...shown, hash: "other" },
  "shows another object": { ...shown, uid: "another" },
};
for (const [how, watched] of Object.entries(changes))
  test(`the live ReplicaSet decides when the watch ${how}`, async () => {
    const world = new World();
    assert.equal(await world.identify(), "known");
    world.watched = watched;
    world.replicaSet = sealedSet({ uid: "another" });
    assert.equal(await world.identify(), "ReplicaSet was replaced by another with the same name");
    world.replicaSet = undefined;
    assert.equal(await world.identify(), "ReplicaSet not found");
  });

test("a state that the watch has not shown is not remembered", async () => {
  const world = new World();
  world.watched = { ...shown, resourceVersion: "6" };
  await world.identify();
  await world.identify();
  assert.equal(world.reads.ReplicaSet, 2);
});

test("a pod of another ReplicaSet with the name is not judged by the remembered one", async () => {
  const world = new World();
  await world.identify();
  const [owner] = world.pod.metadata?.ownerReferences ?? [];
  assert.ok(owner);
  world.pod = {
    ...world.pod,
    metadata: { ...world.pod.metadata, ownerReferences: [{ ...owner, uid: "another" }] },
  };
  assert.equal(await world.identify(), "ReplicaSet was replaced by another with the same name");
});

test("a pod that the remembered ReplicaSet would refuse is judged by the live one", async () => {
  const world = new World();
  await world.identify();
  // Of a template that krane applied after that, and that the watch has not shown yet.
  const annotations = { ...world.pod.metadata?.annotations, [annotationKeys.templateHash]: "newer" };
  world.pod = { ...world.pod, metadata: { ...world.pod.metadata, annotations } };
  const { template, ...spec } = world.replicaSet?.spec ?? { selector: {} };
  const metadata = { ...template?.metadata, annotations };
  world.replicaSet = {
    ...sealedSet({ resourceVersion: "8" }),
    spec: { ...spec, template: { ...template, metadata } },
  };
  assert.equal(await world.identify(), "known");
});
