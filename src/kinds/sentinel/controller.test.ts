import assert from "node:assert/strict";
import { test } from "node:test";
import type { DeploymentCondition } from "kubernetes-types/apps/v1.js";
import { testSeal } from "../../../test/support/test-seal.ts";
import { failingSentinel } from "./controller.ts";
import { projectSentinelDeployment } from "./projections.ts";

function failing(available: number, ...conditions: DeploymentCondition[]): string {
  const spec = { replicas: 3, selector: {}, template: {} };
  const status = { availableReplicas: available, conditions };
  return failingSentinel(projectSentinelDeployment({ metadata: { name: "lb" }, spec, status }, testSeal));
}

const stuck: DeploymentCondition = {
  type: "Progressing",
  status: "False",
  reason: "ProgressDeadlineExceeded",
  message: 'ReplicaSet "lb-6fb8c" has timed out progressing.',
};
const refused: DeploymentCondition = {
  type: "ReplicaFailure",
  status: "True",
  reason: "FailedCreate",
  message: 'pods "lb-6fb8c-x7k2p" is forbidden: exceeded quota: small',
};

test("a sentinel whose pods are refused or do not come up says so, with how many are missing", () => {
  const late = 'ProgressDeadlineExceeded: ReplicaSet "lb-6fb8c" has timed out progressing.';
  assert.equal(failing(1, stuck), `2 of 3 pods: ${late}`);
  assert.equal(failing(3, stuck), late);
  assert.equal(
    failing(0, stuck, refused),
    '3 of 3 pods: FailedCreate: pods "lb" is forbidden: exceeded quota: small',
  );
});

test("a sentinel that comes up fails in nothing", () => {
  assert.equal(failing(0), "");
  assert.equal(failing(0, { type: "Progressing", status: "True", reason: "ReplicaSetUpdated" }), "");
});

test("a sentinel that finalizers hold tells of them", () => {
  const metadata = { deletionTimestamp: "2026-01-01T00:00:00Z", finalizers: ["example.com/hold"] };
  assert.equal(
    failingSentinel(projectSentinelDeployment({ metadata }, testSeal)),
    "Deployment is being deleted and waits for finalizer example.com/hold",
  );
});
