// Delete: preconditions, finalizers, grace, and the collection as a whole.
import assert from "node:assert/strict";
import { contractCase } from "../contract-case.ts";
import { boundPod, pendingPod, pods, replicaSet, replicaSets, secret, secrets } from "../fixtures.ts";
import { at } from "../manifest.ts";
import { refused } from "../refusal.ts";
import type { Trial } from "../trial.ts";

const hold = "contract.example/hold";
const otherUid = "00000000-0000-0000-0000-000000000000";

async function createHeld(trial: Trial): Promise<void> {
  await trial.create(secrets, secret("a", { key: "value" }, { finalizers: [hold] }));
  trial.after(() => release(trial));
}

function release(trial: Trial): Promise<unknown> {
  return trial.patch(secrets, "a", "merge", { metadata: { finalizers: null } });
}

function rawDelete(trial: Trial, path: string, query: Record<string, string> = {}) {
  return trial.send({ method: "DELETE", path, query });
}

export const deletingCases = [
  contractCase("delete: removes the object and answers with a Status that names it", async (trial) => {
    const { metadata } = await trial.create(secrets, secret("a"));
    const { status, body } = await rawDelete(trial, trial.path(secrets, "a"));
    assert.equal(status, 200);
    assert.equal(at(body, "status"), "Success");
    assert.deepEqual(at(body, "details"), { name: "a", kind: "secrets", uid: metadata?.uid });
    assert.equal(await trial.find(secrets, "a"), undefined);
  }),
  contractCase("delete: through the client, deleted now and absent the next time", async (trial) => {
    await trial.create(secrets, secret("a"));
    assert.deepEqual(await trial.delete(secrets, "a"), { kind: "deleted" });
    assert.deepEqual(await trial.delete(secrets, "a"), { kind: "absent" });
  }),
  contractCase("delete: in a namespace that does not exist, the object is absent", async (trial) => {
    const ref = { namespace: trial.unique("none"), name: "a" };
    assert.deepEqual(await trial.api.delete(secrets, ref, {}, trial.signal), { kind: "absent" });
  }),
  contractCase("delete: the live uid is accepted as a precondition", async (trial) => {
    const uid = (await trial.create(secrets, secret("a"))).metadata?.uid ?? "";
    assert.deepEqual(await trial.delete(secrets, "a", { uid }), { kind: "deleted" });
  }),
  contractCase("delete: another uid is refused with a conflict and nothing is deleted", async (trial) => {
    const before = await trial.create(secrets, secret("a"));
    await refused(trial.delete(secrets, "a", { uid: otherUid }), {
      status: 409,
      reason: "Conflict",
      message: /the UID in the precondition \(0{8}-.*\) does not match the UID in record/,
    });
    assert.deepEqual(await trial.read(secrets, "a"), before);
  }),
  contractCase("delete: an old resourceVersion is refused with a conflict", async (trial) => {
    const { metadata } = await trial.create(secrets, secret("a"));
    await trial.patch(secrets, "a", "merge", { metadata: { labels: { one: "1" } } });
    await refused(trial.delete(secrets, "a", { resourceVersion: metadata?.resourceVersion ?? "" }), {
      status: 409,
      reason: "Conflict",
      message: /the ResourceVersion in the precondition \(\d+\) does not match the ResourceVersion in record/,
    });
  }),
  contractCase("delete: preconditions on an absent object do not matter", async (trial) => {
    assert.deepEqual(await trial.delete(secrets, "a", { uid: otherUid }), { kind: "absent" });
  }),
  contractCase("delete: preconditions hold for pods with a grace period as well", async (trial) => {
    await trial.create(pods, boundPod("a"));
    trial.after(() => trial.delete(pods, "a", { gracePeriodSeconds: 0 }));
    await refused(trial.delete(pods, "a", { uid: otherUid }), { status: 409, reason: "Conflict" });
    assert.equal((await trial.read(pods, "a")).metadata?.deletionTimestamp, undefined);
  }),
  contractCase("delete: a dry run deletes nothing", async (trial) => {
    await trial.create(secrets, secret("a"));
    await trial.delete(secrets, "a", { dryRun: true });
    assert.ok(await trial.find(secrets, "a"));
  }),
  contractCase("delete: a finalizer holds the object, marked as going", async (trial) => {
    await createHeld(trial);
    assert.deepEqual(await trial.delete(secrets, "a"), { kind: "deleting" });
    const held = await trial.read(secrets, "a");
    assert.ok(held.metadata?.deletionTimestamp);
    assert.equal(held.metadata?.deletionGracePeriodSeconds, 0);
    assert.equal(at(held, "data.key") !== undefined, true);
  }),
  contractCase("delete: of an object that is going already changes nothing", async (trial) => {
    await createHeld(trial);
    await trial.delete(secrets, "a");
    const before = await trial.read(secrets, "a");
    assert.deepEqual(await trial.delete(secrets, "a"), { kind: "deleting" });
    assert.deepEqual(await trial.read(secrets, "a"), before);
  }),
  contractCase("delete: the object goes when its last finalizer does", async (trial) => {
    await createHeld(trial);
    await trial.delete(secrets, "a");
    await release(trial);
    assert.equal(await trial.find(secrets, "a"), undefined);
  }),
  contractCase("delete: a finalizer of an object that stays can be removed without effect", async (trial) => {
    await createHeld(trial);
    await release(trial);
    assert.equal((await trial.read(secrets, "a")).metadata?.deletionTimestamp, undefined);
  }),
  contractCase("delete: an object that is going takes no new finalizers", async (trial) => {
    await createHeld(trial);
    await trial.delete(secrets, "a");
    const patch = { metadata: { finalizers: [hold, "contract.example/more"] } };
    await refused(trial.patch(secrets, "a", "merge", patch), {
      status: 422,
      reason: "Invalid",
      causes: ["FieldValueForbidden metadata.finalizers"],
      message: /no new finalizers can be added if the object is being deleted/,
    });
  }),
  contractCase("delete: the name of an object that is going cannot be taken yet", async (trial) => {
    await createHeld(trial);
    await trial.delete(secrets, "a");
    await refused(trial.create(secrets, secret("a")), {
      status: 409,
      reason: "AlreadyExists",
      message: /object is being deleted: secrets "a" already exists/,
    });
  }),
  contractCase("delete: the deletionTimestamp cannot be taken back", async (trial) => {
    await createHeld(trial);
    await trial.delete(secrets, "a");
    const patched = await trial.patch(secrets, "a", "merge", {
      metadata: { deletionTimestamp: null, labels: { one: "1" } },
    });
    assert.ok(patched.metadata?.deletionTimestamp);
  }),
  contractCase("delete: deleting adds one to the generation of a kind that has it", async (trial) => {
    const manifest = replicaSet("a");
    const metadata = { ...manifest.metadata, finalizers: [hold] };
    await trial.create(replicaSets, { ...manifest, metadata });
    trial.after(() => trial.patch(replicaSets, "a", "merge", { metadata: { finalizers: null } }));
    await trial.delete(replicaSets, "a");
    assert.equal((await trial.read(replicaSets, "a")).metadata?.generation, 2);
  }),
  contractCase("delete: a pod without a node goes at once", async (trial) => {
    await trial.create(pods, pendingPod("a"));
    assert.deepEqual(await trial.delete(pods, "a"), { kind: "deleted" });
    assert.equal(await trial.find(pods, "a"), undefined);
  }),
  contractCase("delete: a pod on a node gets its grace period and stays", async (trial) => {
    await trial.create(pods, boundPod("a", { terminationGracePeriodSeconds: 45 }));
    trial.after(() => trial.delete(pods, "a", { gracePeriodSeconds: 0 }));
    assert.deepEqual(await trial.delete(pods, "a"), { kind: "deleting" });
    const going = await trial.read(pods, "a");
    assert.equal(going.metadata?.deletionGracePeriodSeconds, 45);
    const until = Date.parse(going.metadata?.deletionTimestamp ?? "");
    assert.ok(until - Date.parse(going.metadata?.creationTimestamp ?? "") >= 45_000);
  }),
  contractCase("delete: a grace period in the request wins over the pod's", async (trial) => {
    await trial.create(pods, boundPod("a"));
    trial.after(() => trial.delete(pods, "a", { gracePeriodSeconds: 0 }));
    await trial.delete(pods, "a", { gracePeriodSeconds: 7 });
    assert.equal((await trial.read(pods, "a")).metadata?.deletionGracePeriodSeconds, 7);
  }),
  contractCase("delete: a grace period can be shortened, not made longer", async (trial) => {
    await trial.create(pods, boundPod("a"));
    trial.after(() => trial.delete(pods, "a", { gracePeriodSeconds: 0 }));
    await trial.delete(pods, "a", { gracePeriodSeconds: 20 });
    await trial.delete(pods, "a", { gracePeriodSeconds: 40 });
    assert.equal((await trial.read(pods, "a")).metadata?.deletionGracePeriodSeconds, 20);
    await trial.delete(pods, "a", { gracePeriodSeconds: 10 });
    assert.equal((await trial.read(pods, "a")).metadata?.deletionGracePeriodSeconds, 10);
  }),
  contractCase("delete: a grace period of 0 removes a pod without its kubelet", async (trial) => {
    await trial.create(pods, boundPod("a"));
    assert.deepEqual(await trial.delete(pods, "a", { gracePeriodSeconds: 0 }), { kind: "deleted" });
    assert.equal(await trial.find(pods, "a"), undefined);
  }),
  contractCase("delete: options in the query count like those in a body", async (trial) => {
    await trial.create(pods, boundPod("a"));
    trial.after(() => trial.delete(pods, "a", { gracePeriodSeconds: 0 }));
    await rawDelete(trial, trial.path(pods, "a"), { gracePeriodSeconds: "9" });
    assert.equal((await trial.read(pods, "a")).metadata?.deletionGracePeriodSeconds, 9);
  }),
  contractCase("delete: an unknown propagation policy is refused", async (trial) => {
    await trial.create(secrets, secret("a"));
    const answer = await rawDelete(trial, trial.path(secrets, "a"), { propagationPolicy: "Sideways" });
    assert.equal(answer.status, 422);
    assert.equal(at(answer.body, "details.causes.0.field"), "propagationPolicy");
  }),
  contractCase("delete collection: removes what the selector matches", async (trial) => {
    await trial.create(secrets, secret("a", {}, { labels: { go: "yes" } }));
    await trial.create(secrets, secret("b", {}, { labels: { go: "yes" } }));
    await trial.create(secrets, secret("c", {}, { labels: { go: "no" } }));
    const { status, body } = await rawDelete(trial, trial.path(secrets), { labelSelector: "go=yes" });
    assert.equal(status, 200);
    assert.equal(at(body, "kind"), "SecretList");
    assert.deepEqual(await trial.names(secrets), ["c"]);
  }),
  contractCase("delete collection: of all namespaces is not allowed", async (trial) => {
    const { status } = await rawDelete(trial, "/api/v1/secrets", { labelSelector: "nobody=has-this" });
    assert.equal(status, 405);
  }),
];
