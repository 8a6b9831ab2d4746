// What happens to dependents when their owner goes.
import assert from "node:assert/strict";
import { contractCase } from "../contract-case.ts";
import { eventually } from "../eventually.ts";
import { pods, replicaSet, replicaSets, secret, secrets } from "../fixtures.ts";
import type { Manifest } from "../manifest.ts";
import { invalid } from "../refusal.ts";
import type { Trial } from "../trial.ts";

const hold = "contract.example/hold";

function ownedBy(owner: Manifest, name: string, fields: object = {}, metadata: object = {}): Manifest {
  const reference = {
    apiVersion: "v1",
    kind: "Secret",
    name: owner.metadata?.name,
    uid: owner.metadata?.uid,
    ...fields,
  };
  return secret(name, {}, { ownerReferences: [reference], ...metadata });
}

async function eventuallyGone(trial: Trial, name: string): Promise<void> {
  await eventually(`${name} is collected`, async () => {
    assert.equal(await trial.find(secrets, name), undefined);
  });
}

export const garbageCollectionCases = [
  contractCase("collection: dependents go after their owner", async (trial) => {
    const owner = await trial.create(secrets, secret("owner"));
    await trial.create(secrets, ownedBy(owner, "dependent"));
    assert.deepEqual(await trial.delete(secrets, "owner", { propagation: "Background" }), {
      kind: "deleted",
    });
    await eventuallyGone(trial, "dependent");
  }),
  contractCase("collection: dependents of dependents go too", async (trial) => {
    const owner = await trial.create(secrets, secret("owner"));
    const middle = await trial.create(secrets, ownedBy(owner, "middle"));
    await trial.create(secrets, ownedBy(middle, "last"));
    await trial.delete(secrets, "owner");
    await eventuallyGone(trial, "last");
  }),
  contractCase(
    "collection: a dependent with another living owner stays, without the dead one",
    async (trial) => {
      const one = await trial.create(secrets, secret("one"));
      const two = await trial.create(secrets, secret("two"));
      const both = ["one", "two"].map((name, index) => ({
        apiVersion: "v1",
        kind: "Secret",
        name,
        uid: [one, two][index]?.metadata?.uid,
      }));
      await trial.create(secrets, secret("dependent", {}, { ownerReferences: both }));
      await trial.delete(secrets, "one");
      await eventually("the dead owner is no longer named", async () => {
        const references = (await trial.read(secrets, "dependent")).metadata?.ownerReferences ?? [];
        assert.deepEqual(
          references.map((reference) => reference.name),
          ["two"],
        );
      });
    },
  ),
  contractCase("collection: Orphan leaves the dependents, without the owner's reference", async (trial) => {
    const owner = await trial.create(secrets, secret("owner"));
    await trial.create(secrets, ownedBy(owner, "dependent"));
    await trial.delete(secrets, "owner", { propagation: "Orphan" });
    await eventuallyGone(trial, "owner");
    assert.deepEqual((await trial.read(secrets, "dependent")).metadata?.ownerReferences ?? [], []);
  }),
  contractCase("collection: Orphan leaves the other finalizers of the owner alone", async (trial) => {
    await trial.create(secrets, secret("owner", {}, { finalizers: [hold] }));
    trial.after(() => trial.patch(secrets, "owner", "merge", { metadata: { finalizers: null } }));
    await trial.delete(secrets, "owner", { propagation: "Orphan" });
    await eventually("orphaning is over and only the test's own hold is left", async () => {
      assert.deepEqual((await trial.read(secrets, "owner")).metadata?.finalizers, [hold]);
    });
  }),
  contractCase("collection: Foreground keeps the owner until blocking dependents are gone", async (trial) => {
    const owner = await trial.create(secrets, secret("owner"));
    const held = ownedBy(owner, "dependent", { blockOwnerDeletion: true }, { finalizers: [hold] });
    await trial.create(secrets, held);
    const release = () => trial.patch(secrets, "dependent", "merge", { metadata: { finalizers: null } });
    trial.after(release);
    // The collector must know of the dependent before its owner goes.
    await trial.delete(secrets, "owner", { propagation: "Foreground" });
    await eventually("the dependent is being deleted", async () => {
      assert.ok((await trial.read(secrets, "dependent")).metadata?.deletionTimestamp, "not yet");
    });
    const waiting = await trial.read(secrets, "owner");
    assert.deepEqual(waiting.metadata?.finalizers, ["foregroundDeletion"]);
    assert.ok(waiting.metadata?.deletionTimestamp);
    await release();
    await eventuallyGone(trial, "owner");
  }),
  contractCase("collection: a reference to an owner that never was is collected", async (trial) => {
    const nobody = { metadata: { name: "nobody", uid: "00000000-0000-0000-0000-000000000000" } };
    await trial.create(secrets, ownedBy(nobody, "dependent"));
    await eventuallyGone(trial, "dependent");
  }),
  contractCase("collection: a new object with the owner's name is not the owner", async (trial) => {
    const owner = await trial.create(secrets, secret("owner"));
    await trial.create(secrets, ownedBy(owner, "dependent"));
    await trial.delete(secrets, "owner");
    await trial.create(secrets, secret("owner"));
    await eventuallyGone(trial, "dependent");
    assert.ok(await trial.find(secrets, "owner"));
  }),
  contractCase("collection: the pods of a ReplicaSet go with it", async (trial) => {
    await trial.create(replicaSets, replicaSet("a", { replicas: 2 }));
    await eventually("its pods are there", async () => {
      assert.equal((await trial.names(pods, { labelSelector: "app=a" })).length, 2);
    });
    await trial.delete(replicaSets, "a");
    await eventually("its pods are gone", async () => {
      assert.deepEqual(await trial.names(pods, { labelSelector: "app=a" }), []);
    });
  }),
  contractCase("collection: Orphan leaves the pods of a ReplicaSet running", async (trial) => {
    await trial.create(replicaSets, replicaSet("a", { replicas: 2 }));
    const before = await eventually("its pods are there", async () => {
      const names = await trial.names(pods, { labelSelector: "app=a" });
      assert.equal(names.length, 2);
      return names;
    });
    await trial.delete(replicaSets, "a", { propagation: "Orphan" });
    await eventually("the ReplicaSet is gone", async () => {
      assert.equal(await trial.find(replicaSets, "a"), undefined);
    });
    assert.deepEqual(await trial.names(pods, { labelSelector: "app=a" }), before);
    for (const name of before) await trial.delete(pods, name, { gracePeriodSeconds: 0 });
  }),
  contractCase("owner references: one without a uid is refused", async (trial) => {
    const reference = { apiVersion: "v1", kind: "Secret", name: "owner", uid: "" };
    await invalid(trial.create(secrets, secret("a", {}, { ownerReferences: [reference] })), [
      "FieldValueInvalid metadata.ownerReferences.uid",
    ]);
  }),
  contractCase("owner references: two controllers are refused", async (trial) => {
    const reference = (uid: string) => ({
      apiVersion: "v1",
      kind: "Secret",
      name: uid,
      uid,
      controller: true,
    });
    await invalid(
      trial.create(secrets, secret("a", {}, { ownerReferences: [reference("one"), reference("two")] })),
      ["FieldValueInvalid metadata.ownerReferences"],
      /Only one reference can have Controller set to true/,
    );
  }),
];
