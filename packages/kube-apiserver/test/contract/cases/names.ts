// Names and namespaces: which names are taken, and what a namespace does to what is in it.
import assert from "node:assert/strict";
import { contractCase } from "../contract-case.ts";
import { eventually } from "../eventually.ts";
import {
  namespaces,
  pendingPod,
  pods,
  replicaSet,
  replicaSets,
  secret,
  secrets,
  service,
  services,
} from "../fixtures.ts";
import { at } from "../manifest.ts";
import { invalid, refused } from "../refusal.ts";
import type { Trial } from "../trial.ts";

/** A namespace that stays Terminating because something in it is held. */
async function terminatingNamespace(trial: Trial): Promise<string> {
  await trial.create(secrets, secret("held", {}, { finalizers: ["contract.example/hold"] }));
  trial.after(() => release(trial));
  await trial.delete(namespaces, trial.namespace);
  return trial.namespace;
}

function release(trial: Trial): Promise<unknown> {
  return trial.patch(secrets, "held", "merge", { metadata: { finalizers: null } });
}

export const nameCases = [
  contractCase("names: one that is no DNS subdomain is refused", async (trial) => {
    await invalid(
      trial.create(secrets, secret("Not_A_Name")),
      ["FieldValueInvalid metadata.name"],
      /lowercase RFC 1123 subdomain/,
    );
  }),
  contractCase("names: one of 253 characters is taken, of 254 not", async (trial) => {
    await trial.create(secrets, secret("a".repeat(253)));
    await invalid(trial.create(secrets, secret("a".repeat(254))), ["FieldValueInvalid metadata.name"]);
  }),
  contractCase("names: an object without one is refused", async (trial) => {
    await invalid(
      trial.create(secrets, { metadata: {} }),
      ["FieldValueRequired metadata.name"],
      /name or generateName is required/,
    );
  }),
  contractCase("names: a Service's has no dots", async (trial) => {
    await invalid(trial.create(services, service("a.b")), ["FieldValueInvalid metadata.name"]);
  }),
  contractCase("names: a namespace's has no dots", async (trial) => {
    const created = trial.create(namespaces, { metadata: { name: "a.b" } });
    await invalid(created, ["FieldValueInvalid metadata.name"]);
  }),
  contractCase("names: a ReplicaSet's may have dots", async (trial) => {
    await trial.create(replicaSets, replicaSet("a.b"));
  }),
  contractCase("namespaces: a create into one that does not exist names the namespace", async (trial) => {
    const namespace = trial.unique("none");
    const answer = await trial.send({
      method: "POST",
      path: `/api/v1/namespaces/${namespace}/secrets`,
      contentType: "application/json",
      body: { apiVersion: "v1", kind: "Secret", metadata: { name: "a" } },
    });
    assert.equal(answer.status, 404);
    assert.equal(at(answer.body, "message"), `namespaces "${namespace}" not found`);
    assert.deepEqual(at(answer.body, "details"), { name: namespace, kind: "namespaces" });
  }),
  contractCase("namespaces: so does an apply", async (trial) => {
    const namespace = trial.unique("none");
    await refused(trial.apply(secrets, secret("a", {}, { namespace })), {
      status: 404,
      reason: "NotFound",
      message: new RegExp(`namespaces "${namespace}" not found`),
    });
  }),
  contractCase("namespaces: an object that names another one than the path is refused", async (trial) => {
    const body = { apiVersion: "v1", kind: "Secret", metadata: { name: "a", namespace: "other" } };
    const request = { path: trial.path(secrets), contentType: "application/json", body };
    await refused(trial.answer({ method: "POST", ...request }), {
      status: 400,
      reason: "BadRequest",
      message: /the namespace of the provided object does not match the namespace sent on the request/,
    });
  }),
  contractCase(
    "namespaces: a new one is Active, labelled with its name and held by Kubernetes",
    async (trial) => {
      const found = await trial.read(namespaces, trial.namespace);
      assert.equal(at(found, "status.phase"), "Active");
      assert.deepEqual(at(found, "spec.finalizers"), ["kubernetes"]);
      assert.equal(found.metadata?.labels?.["kubernetes.io/metadata.name"], trial.namespace);
    },
  ),
  contractCase("namespaces: one that exists is refused with AlreadyExists", async (trial) => {
    await refused(trial.create(namespaces, { metadata: { name: trial.namespace } }), {
      status: 409,
      reason: "AlreadyExists",
    });
  }),
  contractCase("namespaces: the default one may not be deleted", async (trial) => {
    await refused(trial.delete(namespaces, "default", { dryRun: true }), {
      status: 403,
      reason: "Forbidden",
      message: /this namespace may not be deleted/,
    });
  }),
  contractCase(
    "namespaces: deleting one marks it Terminating while something in it is held",
    async (trial) => {
      await terminatingNamespace(trial);
      const found = await trial.read(namespaces, trial.namespace);
      assert.equal(at(found, "status.phase"), "Terminating");
      assert.ok(found.metadata?.deletionTimestamp);
    },
  ),
  contractCase("namespaces: a create into a terminating one is Forbidden with the cause", async (trial) => {
    await terminatingNamespace(trial);
    const error = await refused(trial.create(secrets, secret("late")), {
      status: 403,
      reason: "Forbidden",
      message: /because it is being terminated/,
      causes: ["NamespaceTerminating metadata.namespace"],
    });
    assert.equal(error.causes[0]?.message, `namespace ${trial.namespace} is being terminated`);
  }),
  contractCase(
    "namespaces: an apply that would create in a terminating one is Forbidden too",
    async (trial) => {
      await terminatingNamespace(trial);
      await refused(trial.apply(secrets, secret("late")), {
        status: 403,
        reason: "Forbidden",
        causes: ["NamespaceTerminating metadata.namespace"],
      });
    },
  ),
  contractCase("namespaces: what is in a terminating one may still be changed", async (trial) => {
    await terminatingNamespace(trial);
    const changed = await trial.apply(secrets, secret("held", { key: "value" }));
    assert.ok(at(changed, "data.key"));
  }),
  contractCase("namespaces: deleting one empties it and then removes it", async (trial) => {
    await trial.create(secrets, secret("a"));
    await trial.create(pods, pendingPod("b"));
    await trial.create(replicaSets, replicaSet("c"));
    assert.deepEqual(await trial.delete(namespaces, trial.namespace), { kind: "deleting" });
    await eventually("the namespace is gone", async () => {
      assert.equal(await trial.find(namespaces, trial.namespace), undefined);
    });
    assert.equal(await trial.find(secrets, "a"), undefined);
    assert.equal(await trial.find(pods, "b"), undefined);
    assert.equal(await trial.find(replicaSets, "c"), undefined);
  }),
  contractCase("namespaces: one that was held goes when the hold is released", async (trial) => {
    await terminatingNamespace(trial);
    await eventually("everything else is gone", async () => {
      assert.deepEqual(await trial.names(secrets), ["held"]);
      assert.ok((await trial.read(secrets, "held")).metadata?.deletionTimestamp, "not yet");
    });
    await release(trial);
    // The real namespace controller waits longer and longer between its looks.
    const patience = { deadlineMs: 80_000 };
    await eventually(
      "the namespace is gone",
      async () => assert.equal(await trial.find(namespaces, trial.namespace), undefined),
      patience,
    );
  }),
  contractCase("namespaces: the name can be taken again, by another object", async (trial) => {
    const first = await trial.read(namespaces, trial.namespace);
    await trial.delete(namespaces, trial.namespace);
    const second = await eventually("the name is free", () =>
      trial.create(namespaces, { metadata: { name: trial.namespace } }),
    );
    assert.notEqual(second.metadata?.uid, first.metadata?.uid);
  }),
];
