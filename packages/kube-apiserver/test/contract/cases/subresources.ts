// What stands below an object: scale, status, binding and eviction.
import assert from "node:assert/strict";
import { contractCase } from "../contract-case.ts";
import { eventually } from "../eventually.ts";
import {
  appsDeployment,
  appsDeployments,
  bindings,
  boundPod,
  disruptionBudget,
  evictions,
  pendingPod,
  podDisruptionBudgets,
  pods,
  replicaSet,
  replicaSets,
  secret,
  secrets,
} from "../fixtures.ts";
import { at, managedBy, ownedFields } from "../manifest.ts";
import { invalid, refused } from "../refusal.ts";
import type { Trial } from "../trial.ts";

function bind(trial: Trial, name: string, node: string): Promise<unknown> {
  const target = { apiVersion: "v1", kind: "Node", name: node };
  return trial.create(bindings, { metadata: { name }, target }, { subresource: "binding" });
}

function evict(trial: Trial, name: string, fields: object = {}, dryRun = false): Promise<unknown> {
  return trial.create(evictions, { metadata: { name }, ...fields }, { subresource: "eviction", dryRun });
}

/** A pod that is Ready because the test says so, under a budget that cannot spare it. */
async function createGuarded(trial: Trial): Promise<void> {
  await trial.create(pods, boundPod("a", {}, { labels: { app: "a" } }));
  trial.after(() => trial.delete(pods, "a", { gracePeriodSeconds: 0 }));
  const conditions = [{ type: "Ready", status: "True" }];
  const status = { phase: "Running", conditions };
  await trial.patch(pods, "a", "merge", { status }, { subresource: "status" });
  await trial.create(podDisruptionBudgets, disruptionBudget("a", { minAvailable: 1 }));
  await eventually("the budget has seen its pod", async () => {
    const budget = await trial.read(podDisruptionBudgets, "a");
    assert.equal(at(budget, "status.currentHealthy"), 1);
  });
}

export const subresourceCases = [
  contractCase("scale: shows wanted and present replicas and the selector", async (trial) => {
    await trial.create(replicaSets, replicaSet("a", { replicas: 0 }));
    const scale = await trial.answer({ method: "GET", path: trial.path(replicaSets, "a", "scale") });
    assert.equal(`${scale.apiVersion} ${scale.kind}`, "autoscaling/v1 Scale");
    assert.equal(scale.metadata?.name, "a");
    assert.deepEqual(at(scale, "status"), { replicas: 0, selector: "app=a" });
  }),
  contractCase("scale: an update changes the replicas of the object", async (trial) => {
    await trial.create(appsDeployments, appsDeployment("a", { replicas: 0, paused: true }));
    const path = trial.path(appsDeployments, "a", "scale");
    // Without a version, because the controllers write to the object as well.
    const metadata = { name: "a", namespace: trial.namespace };
    const body = { apiVersion: "autoscaling/v1", kind: "Scale", metadata, spec: { replicas: 2 } };
    const query = { fieldManager: "scaler" };
    const answer = await trial.answer({ method: "PUT", path, contentType: "application/json", body, query });
    assert.equal(at(answer, "spec.replicas"), 2);
    const deployment = await trial.read(appsDeployments, "a");
    assert.equal(at(deployment, "spec.replicas"), 2);
    assert.deepEqual(ownedFields(deployment, "scaler", "Update"), ["spec.replicas"]);
  }),
  contractCase("scale: an old resourceVersion is refused with a conflict", async (trial) => {
    await trial.create(replicaSets, replicaSet("a"));
    const path = trial.path(replicaSets, "a", "scale");
    const scale = await trial.answer({ method: "GET", path });
    await trial.patch(replicaSets, "a", "merge", { metadata: { labels: { one: "1" } } });
    const body = { ...scale, spec: { replicas: 2 } };
    await refused(trial.answer({ method: "PUT", path, contentType: "application/json", body }), {
      status: 409,
      reason: "Conflict",
    });
  }),
  contractCase("scale: a negative number is invalid", async (trial) => {
    await trial.create(replicaSets, replicaSet("a"));
    const patch = { spec: { replicas: -1 } };
    await invalid(trial.patch(replicaSets, "a", "merge", patch, { subresource: "scale" }), [
      "FieldValueInvalid spec.replicas",
    ]);
  }),
  contractCase("scale: of what is not there is not found", async (trial) => {
    const path = trial.path(replicaSets, "none", "scale");
    await refused(trial.answer({ method: "GET", path }), { status: 404, reason: "NotFound" });
  }),
  contractCase("a subresource that a kind does not have is not found", async (trial) => {
    await trial.create(secrets, secret("a"));
    const { status } = await trial.send({ method: "GET", path: trial.path(secrets, "a", "status") });
    assert.equal(status, 404);
  }),
  contractCase("status: a get of it is the whole object", async (trial) => {
    await trial.create(replicaSets, replicaSet("a"));
    const shown = await trial.answer({ method: "GET", path: trial.path(replicaSets, "a", "status") });
    assert.equal(shown.kind, "ReplicaSet");
    assert.ok(at(shown, "spec.template"));
  }),
  contractCase("status: a patch of it leaves spec and labels alone", async (trial) => {
    const before = await trial.create(pods, pendingPod("a"));
    const patch = {
      metadata: { labels: { one: "1" } },
      spec: { activeDeadlineSeconds: 5 },
      status: { message: "hello" },
    };
    const after = await trial.patch(pods, "a", "merge", patch, { subresource: "status" });
    assert.equal(at(after, "status.message"), "hello");
    assert.deepEqual(at(after, "spec"), at(before, "spec"));
    assert.equal(after.metadata?.generation, before.metadata?.generation);
  }),
  contractCase("status: a patch of an apps/v1 Deployment's leaves its labels alone", async (trial) => {
    await trial.create(appsDeployments, appsDeployment("a", { paused: true }));
    const patch = { metadata: { labels: { late: "1" } }, status: {} };
    const options = { subresource: "status", query: { fieldManager: "reporter" } };
    const after = await trial.patch(appsDeployments, "a", "merge", patch, options);
    assert.deepEqual(after.metadata?.labels, { app: "a" });
    assert.deepEqual(managedBy(after, "reporter"), []);
  }),
  contractCase("status: a patch of a ReplicaSet's takes labels along", async (trial) => {
    await trial.create(replicaSets, replicaSet("a"));
    const patch = { metadata: { labels: { late: "1" } } };
    const after = await trial.patch(replicaSets, "a", "merge", patch, { subresource: "status" });
    assert.deepEqual(after.metadata?.labels, { app: "a", late: "1" });
  }),
  contractCase("binding: puts a pod on a node", async (trial) => {
    await trial.create(pods, pendingPod("a"));
    trial.after(() => trial.delete(pods, "a", { gracePeriodSeconds: 0 }));
    const answer = await bind(trial, "a", "no-such-node");
    assert.equal(at(answer, "kind"), "Status");
    assert.equal(at(answer, "status"), "Success");
    const bound = await trial.read(pods, "a");
    assert.equal(at(bound, "spec.nodeName"), "no-such-node");
    const conditions = at(bound, "status.conditions") as readonly { type: string; status: string }[];
    assert.equal(conditions.find((one) => one.type === "PodScheduled")?.status, "True");
  }),
  contractCase("binding: a pod that has a node keeps it", async (trial) => {
    await trial.create(pods, pendingPod("a"));
    trial.after(() => trial.delete(pods, "a", { gracePeriodSeconds: 0 }));
    await bind(trial, "a", "no-such-node");
    await refused(bind(trial, "a", "another-node"), {
      status: 409,
      reason: "Conflict",
      message: /pod a is already assigned to node "no-such-node"/,
    });
  }),
  contractCase("binding: a pod that is not there is not found", async (trial) => {
    await refused(bind(trial, "none", "no-such-node"), { status: 404, reason: "NotFound" });
  }),
  contractCase("eviction: without a budget deletes the pod", async (trial) => {
    await trial.create(pods, pendingPod("a"));
    const answer = await evict(trial, "a");
    assert.equal(at(answer, "status"), "Success");
    assert.equal(await trial.find(pods, "a"), undefined);
  }),
  contractCase("eviction: of a pod on a node gives it its grace period", async (trial) => {
    await trial.create(pods, boundPod("a"));
    trial.after(() => trial.delete(pods, "a", { gracePeriodSeconds: 0 }));
    await evict(trial, "a");
    assert.equal((await trial.read(pods, "a")).metadata?.deletionGracePeriodSeconds, 30);
  }),
  contractCase("eviction: that would break a budget is refused with 429 and the cause", async (trial) => {
    await createGuarded(trial);
    await refused(evict(trial, "a"), {
      status: 429,
      reason: "TooManyRequests",
      message: /Cannot evict pod as it would violate the pod's disruption budget/,
      causes: ["DisruptionBudget undefined"],
    });
    assert.equal((await trial.read(pods, "a")).metadata?.deletionTimestamp, undefined);
  }),
  contractCase("eviction: goes through once the budget allows it", async (trial) => {
    await createGuarded(trial);
    await trial.patch(podDisruptionBudgets, "a", "merge", { spec: { minAvailable: 0 } });
    await eventually("the budget allows a disruption", async () => {
      const budget = await trial.read(podDisruptionBudgets, "a");
      assert.equal(at(budget, "status.disruptionsAllowed"), 1);
    });
    await evict(trial, "a");
    assert.ok((await trial.read(pods, "a")).metadata?.deletionTimestamp);
  }),
  contractCase("eviction: a dry run evicts nothing", async (trial) => {
    await trial.create(pods, pendingPod("a"));
    await evict(trial, "a", {}, true);
    assert.ok(await trial.find(pods, "a"));
  }),
  contractCase("eviction: obeys the preconditions in its delete options", async (trial) => {
    await trial.create(pods, pendingPod("a"));
    const preconditions = { uid: "00000000-0000-0000-0000-000000000000" };
    await refused(evict(trial, "a", { deleteOptions: { preconditions } }), {
      status: 409,
      reason: "Conflict",
    });
    assert.ok(await trial.find(pods, "a"));
  }),
  contractCase("eviction: of a pod that is not there is not found", async (trial) => {
    await refused(evict(trial, "none"), { status: 404, reason: "NotFound" });
  }),
];
