import assert from "node:assert/strict";
import { test } from "node:test";
import type { ReplicaSet } from "kubernetes-types/apps/v1.js";
import type { ContainerStatus, Pod, PodStatus } from "kubernetes-types/core/v1.js";
import { testSeal } from "../../../test/support/test-seal.ts";
import { annotationKeys } from "../../model/labels.ts";
import { failingDeployment, isAboutOlderPods } from "./failing.ts";
import { projectPod, projectReplicaSet } from "./projections.ts";

type Waiting = NonNullable<ContainerStatus["state"]>["waiting"];
type Ended = NonNullable<ContainerStatus["lastState"]>["terminated"];

function waits(waiting: NonNullable<Waiting>, ended?: NonNullable<Ended>): PodStatus {
  const status = { name: "deployment", image: "", imageID: "", ready: false, restartCount: 1 };
  return {
    phase: "Pending",
    podIP: "10.1.2.3",
    containerStatuses: [
      { ...status, state: { waiting }, ...(ended && { lastState: { terminated: ended } }) },
    ],
  };
}

const running: PodStatus = {
  phase: "Running",
  podIP: "10.1.2.3",
  conditions: [{ type: "ContainersReady", status: "True" }],
};

function failing(
  pods: readonly (PodStatus | Pod)[],
  set: ReplicaSet = { spec: { selector: {}, replicas: 3 } },
) {
  const projected = pods.map((pod) => projectPod("metadata" in pod ? pod : { status: pod as PodStatus }));
  return failingDeployment(projectReplicaSet(set, testSeal), projected);
}

const pull = waits({ reason: "ImagePullBackOff", message: 'Back-off pulling image "shop:9"' });

test("pods that fail for the same reason are counted together, out of all wanted pods", () => {
  assert.equal(
    failing([pull, pull, running]),
    '2 of 3 pods: ImagePullBackOff: Back-off pulling image "shop:9"',
  );
  assert.equal(failing([running, running, running]), "");
  assert.equal(failing([]), "");
});

test("a crashed container shows its exit reason, never its termination message", () => {
  const terminated = { exitCode: 137, reason: "OOMKilled", message: "password=hunter2" };
  const message = "back-off 5m0s restarting failed container=deployment pod=web-x7k2p_acme(1234)";
  const crash = waits({ reason: "CrashLoopBackOff", message }, terminated);
  assert.equal(failing([crash]), "1 of 3 pods: CrashLoopBackOff: OOMKilled, exit code 137");
  assert.equal(failing([waits({ reason: "CrashLoopBackOff", message })]), "1 of 3 pods: CrashLoopBackOff");
});

test("every waiting reason is shown, except those of a normal start", () => {
  const missing = waits({ reason: "CreateContainerConfigError", message: 'secret "pull" not found' });
  assert.equal(failing([missing]), '1 of 3 pods: CreateContainerConfigError: secret "pull" not found');
  assert.equal(failing([waits({ reason: "RunContainerError" })]), "1 of 3 pods: RunContainerError");
  for (const reason of ["ContainerCreating", "PodInitializing", ""])
    assert.equal(failing([waits({ reason })]), "");
});

test("an unschedulable pod is explained with the scheduler's message", () => {
  const conditions = [
    {
      type: "PodScheduled",
      status: "False",
      reason: "Unschedulable",
      message: "0/3 nodes are available: 3 Insufficient cpu.",
    },
  ];
  const pending: PodStatus = { phase: "Pending", conditions };
  assert.equal(
    failing([pending, pending, pending]),
    "3 of 3 pods: Unschedulable: 0/3 nodes are available: 3 Insufficient cpu.",
  );
});

test("pods that the server refuses are counted as the missing ones", () => {
  const message = 'pods "web-x7k2p" is forbidden: exceeded quota: small, used: pods=1, limited: pods=1';
  const set: ReplicaSet = {
    metadata: { name: "web" },
    spec: { selector: {}, replicas: 3 },
    status: {
      replicas: 1,
      conditions: [{ type: "ReplicaFailure", status: "True", reason: "FailedCreate", message }],
    },
  };
  assert.equal(
    failing([running], set),
    '2 of 3 pods: FailedCreate: pods "web" is forbidden: exceeded quota: small, used: pods=1, limited: pods=1',
  );
});

test("the two most common reasons are shown, always in the same order", () => {
  const other = waits({ reason: "InvalidImageName" });
  const third = waits({ reason: "RunContainerError" });
  const expected = "2 of 4 pods: InvalidImageName; 1 of 4 pods: ImagePullBackOff: Back-off";
  assert.ok(failing([pull, other, third, other]).startsWith(expected));
  assert.equal(failing([third, other, pull, other]), failing([pull, other, third, other]));
});

test("finished and terminating pods do not count as failing", () => {
  const leaving: Pod = { metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" }, status: pull };
  assert.equal(failing([leaving, { ...pull, phase: "Failed" }, { ...pull, phase: "Succeeded" }]), "");
});

test("pods from an older template are counted separately, after those of the newest one", () => {
  const annotations = { [annotationKeys.templateHash]: "new" };
  const set: ReplicaSet = {
    spec: { selector: {}, replicas: 3, template: { metadata: { annotations } } },
  };
  const fieldsV1 = {
    "f:metadata": { "f:annotations": { [`f:${annotationKeys.templateHash}`]: {} } },
    "f:spec": {},
  };
  const current: Pod = {
    metadata: { annotations, managedFields: [{ manager: "kube-controller-manager", fieldsV1 }] },
    status: waits({ reason: "RunContainerError" }),
  };
  assert.equal(
    failing([pull, pull], set),
    '2 of 3 pods from an older version: ImagePullBackOff: Back-off pulling image "shop:9"',
  );
  assert.equal(
    failing([pull, pull, current], set),
    '1 of 3 pods: RunContainerError; 2 of 3 pods from an older version: ImagePullBackOff: Back-off pulling image "shop:9"',
  );
});

test("older pods are recognised in the texts of this and of older agents", () => {
  assert.ok(isAboutOlderPods("2 of 3 pods from an older version: ImagePullBackOff"));
  assert.ok(isAboutOlderPods("2 of 3 pods of an earlier description: ImagePullBackOff"));
  assert.ok(!isAboutOlderPods("1 of 3 pods: Evicted; 2 of 3 pods from an older version: ImagePullBackOff"));
});

test("finalizers that block the deletion of a ReplicaSet come before any pod's reason", () => {
  const set: ReplicaSet = {
    metadata: { deletionTimestamp: "2026-01-01T00:00:00Z", finalizers: ["example.com/hold"] },
  };
  assert.equal(failing([pull], set), "ReplicaSet is being deleted and waits for finalizer example.com/hold");
});

test("a healthy pod has no obstacle field, to save memory", () => {
  assert.ok(!("obstacle" in projectPod({ status: running })));
});
