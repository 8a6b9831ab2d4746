import assert from "node:assert/strict";
import { test } from "node:test";
import { toBinary } from "@bufbuild/protobuf";
import type { Deployment, DeploymentStatus } from "kubernetes-types/apps/v1.js";
import type { ObjectMeta } from "kubernetes-types/meta/v1.js";
import { sentinelSpec } from "../../../test/support/sentinel-messages.ts";
import { testSeal } from "../../../test/support/test-seal.ts";
import { Health, ReportSentinelStatusRequestSchema } from "../../gen/ctrl/v1/sentinel_pb.ts";
import { desiredSentinelDeployment } from "./desired.ts";
import { observeAbsentSentinel, observeSentinel } from "./observed.ts";
import { projectSentinelDeployment } from "./projections.ts";

const converged: DeploymentStatus = {
  observedGeneration: 2,
  replicas: 3,
  updatedReplicas: 3,
  readyReplicas: 3,
  availableReplicas: 3,
};

function live(status: DeploymentStatus | undefined, replicas = 3, metadata: ObjectMeta = {}): Deployment {
  const manifest = desiredSentinelDeployment(sentinelSpec({ replicas }), { region: "local.dev" });
  return {
    ...manifest,
    metadata: { ...manifest.metadata, uid: "uid-1", generation: 2, ...metadata },
    ...(status && { status }),
  };
}

function observe(status: DeploymentStatus | undefined, replicas = 3) {
  return observeSentinel(projectSentinelDeployment(live(status, replicas), testSeal));
}

test("a sentinel that has converged is reported with its image", () => {
  const { update, counts } = observe(converged);
  assert.deepEqual(
    [update.k8sName, update.sentinelId, update.availableReplicas, update.health, update.runningImage],
    ["gate", "se_1a2B3c4D", 3, Health.HEALTHY, "registry.example/platform/sentinel:1"],
  );
  assert.deepEqual(counts, { wanted: 3, total: 3, ready: 3, updated: 3, converged: true });
  assert.ok(toBinary(ReportSentinelStatusRequestSchema, update).length > 0);
});

const rolling: readonly (readonly [string, DeploymentStatus | undefined, Health])[] = [
  ["its controller has not seen the change", { ...converged, observedGeneration: 1 }, Health.HEALTHY],
  ["pods of the new template are missing", { ...converged, updatedReplicas: 2 }, Health.HEALTHY],
  ["a new pod is not available", { ...converged, availableReplicas: 2 }, Health.HEALTHY],
  ["one is unavailable beside enough others", { ...converged, unavailableReplicas: 1 }, Health.HEALTHY],
  [
    "a pod of the old template still serves",
    { ...converged, replicas: 4, availableReplicas: 4 },
    Health.HEALTHY,
  ],
  ["no pod is available", { ...converged, availableReplicas: 0, unavailableReplicas: 3 }, Health.UNHEALTHY],
  ["it was created a moment ago", undefined, Health.UNHEALTHY],
];

for (const [what, status, health] of rolling) {
  test(`while ${what} there is no running image`, () => {
    const { update, counts } = observe(status);
    assert.deepEqual([update.runningImage, update.health, counts.converged], ["", health, false]);
    assert.equal(update.availableReplicas, status?.availableReplicas ?? 0);
  });
}

test("a sentinel scaled to nothing is paused, also while its last pods go", () => {
  const gone = observe({ observedGeneration: 2 }, 0);
  assert.deepEqual([gone.update.health, gone.update.availableReplicas], [Health.PAUSED, 0]);
  assert.equal(gone.update.runningImage, "registry.example/platform/sentinel:1");
  const going = observe({ ...converged, observedGeneration: 1 }, 0);
  assert.deepEqual([going.update.health, going.update.runningImage], [Health.PAUSED, ""]);
});

test("what is wanted is what the live Deployment asks for, one where it does not say", () => {
  const { spec, ...rest } = live({ ...converged, replicas: 1, updatedReplicas: 1, availableReplicas: 1 });
  assert.ok(spec);
  const { replicas: _, ...unsaid } = spec;
  const { counts } = observeSentinel(projectSentinelDeployment({ ...rest, spec: unsaid }, testSeal));
  assert.deepEqual([counts.wanted, counts.converged], [1, true]);
});

test("the image is that of the sentinel's own container", () => {
  const deployment = live(converged);
  const pod = deployment.spec?.template.spec;
  assert.ok(pod);
  pod.containers.unshift({ name: "sidecar", image: "registry.example/sidecar:1" });
  const { update } = observeSentinel(projectSentinelDeployment(deployment, testSeal));
  assert.equal(update.runningImage, "registry.example/platform/sentinel:1");
});

test("why it does not come up is told in the word of Kubernetes", () => {
  const condition = (type: string, status: string, reason: string) => ({ type, status, reason });
  const failureOf = (...conditions: ReturnType<typeof condition>[]) =>
    observe({ ...converged, conditions }).counts.failure;
  const stuck = condition("Progressing", "False", "ProgressDeadlineExceeded");
  assert.equal(failureOf(stuck), "ProgressDeadlineExceeded");
  assert.equal(failureOf(stuck, condition("ReplicaFailure", "True", "FailedCreate")), "FailedCreate");
  assert.equal(failureOf(condition("Progressing", "True", "ReplicaSetUpdated")), undefined);
  assert.equal(failureOf(condition("ReplicaFailure", "False", "FailedCreate")), undefined);
});

test("equal reports have equal fingerprints, and every fact of a report counts", () => {
  const base = projectSentinelDeployment(live(converged), testSeal);
  const fingerprint = (changed: Partial<typeof base>) => observeSentinel({ ...base, ...changed }).fingerprint;
  assert.equal(fingerprint({ uid: "uid-2", manifestHash: "other" }), fingerprint({}));
  const others = [
    { name: "other" },
    { sentinelId: "se_other" },
    { replicasAvailable: 4 },
    { replicas: 0 },
    { image: "registry.example/platform/sentinel:2" },
    { isStatusCurrent: false },
  ].map(fingerprint);
  assert.equal(new Set([fingerprint({}), ...others]).size, others.length + 1);
});

test("a sentinel that is gone is unhealthy, with nothing available", () => {
  const { update, counts, fingerprint } = observeAbsentSentinel("gate", "se_1");
  assert.deepEqual(
    [update.k8sName, update.sentinelId, update.availableReplicas, update.health, update.runningImage],
    ["gate", "se_1", 0, Health.UNHEALTHY, ""],
  );
  assert.deepEqual([counts.ready, counts.wanted], [0, 0]);
  assert.notEqual(fingerprint, observe(converged).fingerprint);
});
