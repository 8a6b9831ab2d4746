// Watch: which events come, in which order, with which state.
import assert from "node:assert/strict";
import { contractCase } from "../contract-case.ts";
import { boundPod, namespaces, pods, replicaSet, replicaSets, secret, secrets } from "../fixtures.ts";
import { at, type Manifest } from "../manifest.ts";
import type { Trial } from "../trial.ts";
import { describeEvent, objectOf } from "../watcher.ts";

async function versionNow(trial: Trial): Promise<string> {
  return (await trial.list(secrets)).resourceVersion;
}

function labelled(name: string, labels: Readonly<Record<string, string>>): Manifest {
  return secret(name, {}, { labels });
}

function relabel(
  trial: Trial,
  name: string,
  labels: Readonly<Record<string, string | null>>,
): Promise<Manifest> {
  return trial.patch(secrets, name, "merge", { metadata: { labels } });
}

export const watchingCases = [
  contractCase("watch: shows each change after its version, in order", async (trial) => {
    const resourceVersion = await versionNow(trial);
    const watch = trial.watch(secrets, { resourceVersion });
    await trial.create(secrets, secret("a"));
    await trial.create(secrets, secret("b"));
    await relabel(trial, "a", { one: "1" });
    await trial.delete(secrets, "a");
    const seen = (await watch.take(4)).map(describeEvent);
    assert.deepEqual(seen, ["ADDED a", "ADDED b", "MODIFIED a", "DELETED a"]);
  }),
  contractCase("watch: is taken at once, also when there is nothing to tell", async (trial) => {
    const resourceVersion = await versionNow(trial);
    await new Promise<void>((taken, failed) => {
      const watch = trial.watch(secrets, { resourceVersion, onOpen: taken });
      watch.ended.then(() => failed(new Error("the watch ended before it was taken")), failed);
    });
  }),
  contractCase("watch: an event carries the whole object, as a get would", async (trial) => {
    const watch = trial.watch(secrets, { resourceVersion: await versionNow(trial) });
    await trial.create(secrets, secret("a", { key: "value" }));
    const event = await watch.next();
    assert.deepEqual(objectOf(event), await trial.read(secrets, "a"));
  }),
  contractCase("watch: versions of events only grow", async (trial) => {
    const watch = trial.watch(secrets, { resourceVersion: await versionNow(trial) });
    for (const name of ["c", "a", "b"]) await trial.create(secrets, secret(name));
    await relabel(trial, "c", { one: "1" });
    const versions = (await watch.take(4)).map((event) =>
      BigInt(objectOf(event).metadata?.resourceVersion ?? 0),
    );
    assert.deepEqual(
      versions,
      [...versions].sort((one, other) => (one < other ? -1 : 1)),
    );
  }),
  contractCase("watch: started in the past, it begins with what was missed", async (trial) => {
    const resourceVersion = await versionNow(trial);
    await trial.create(secrets, secret("a"));
    await relabel(trial, "a", { one: "1" });
    const watch = trial.watch(secrets, { resourceVersion });
    const [added, modified] = await watch.take(2);
    assert.equal(added?.type, "ADDED");
    assert.equal(objectOf(added).metadata?.labels, undefined);
    assert.equal(modified?.type, "MODIFIED");
    assert.deepEqual(objectOf(modified).metadata?.labels, { one: "1" });
  }),
  contractCase("watch: resumed at the last version, it misses and repeats nothing", async (trial) => {
    const first = trial.watch(secrets, { resourceVersion: await versionNow(trial) });
    await trial.create(secrets, secret("a"));
    const event = await first.next();
    first.close();
    await trial.create(secrets, secret("b"));
    await trial.delete(secrets, "a");
    const resourceVersion = objectOf(event).metadata?.resourceVersion ?? "";
    const second = trial.watch(secrets, { resourceVersion });
    await trial.create(secrets, secret("c"));
    const seen = (await second.take(3)).map(describeEvent);
    assert.deepEqual(seen, ["ADDED b", "DELETED a", "ADDED c"]);
  }),
  contractCase("watch: DELETED carries the last state under a newer version", async (trial) => {
    const made = await trial.create(secrets, labelled("a", { one: "1" }));
    const version = made.metadata?.resourceVersion ?? "";
    const watch = trial.watch(secrets, { resourceVersion: version });
    await trial.delete(secrets, "a");
    const event = await watch.next();
    assert.equal(event.type, "DELETED");
    const gone = objectOf(event).metadata;
    assert.deepEqual(gone?.labels, { one: "1" });
    assert.equal(gone?.uid, made.metadata?.uid);
    assert.ok(BigInt(gone?.resourceVersion ?? 0) > BigInt(version));
  }),
  contractCase("watch: a name that is deleted and taken again is two objects", async (trial) => {
    const watch = trial.watch(secrets, { resourceVersion: await versionNow(trial) });
    await trial.create(secrets, secret("a"));
    await trial.delete(secrets, "a");
    await trial.create(secrets, secret("a"));
    const seen = await watch.take(3);
    assert.deepEqual(seen.map(describeEvent), ["ADDED a", "DELETED a", "ADDED a"]);
    assert.notEqual(objectOf(seen[0]).metadata?.uid, objectOf(seen[2]).metadata?.uid);
  }),
  contractCase("watch: a finalizer makes a delete two events", async (trial) => {
    const watch = trial.watch(secrets, { resourceVersion: await versionNow(trial) });
    await trial.create(secrets, secret("a", {}, { finalizers: ["contract.example/hold"] }));
    await trial.delete(secrets, "a");
    await trial.patch(secrets, "a", "merge", { metadata: { finalizers: null } });
    const seen = await watch.take(3);
    assert.deepEqual(seen.map(describeEvent), ["ADDED a", "MODIFIED a", "DELETED a"]);
    assert.ok(objectOf(seen[1]).metadata?.deletionTimestamp);
  }),
  contractCase("watch: a pod on a node is modified before it is deleted", async (trial) => {
    await trial.create(pods, boundPod("a"));
    const { resourceVersion } = await trial.list(pods);
    const watch = trial.watch(pods, { resourceVersion });
    await trial.delete(pods, "a");
    await trial.delete(pods, "a", { gracePeriodSeconds: 0 });
    const seen = await watch.until((event) => event.type === "DELETED");
    assert.equal(describeEvent(seen[0] ?? assert.fail()), "MODIFIED a");
    assert.equal(objectOf(seen[0]).metadata?.deletionGracePeriodSeconds, 30);
  }),
  contractCase("watch: only its namespace", async (trial) => {
    const other = trial.unique("contract");
    await trial.create(namespaces, { metadata: { name: other } });
    trial.after(() => trial.delete(namespaces, other));
    const watch = trial.watch(secrets, { resourceVersion: await versionNow(trial) });
    await trial.create(secrets, secret("theirs", {}, { namespace: other }));
    await trial.create(secrets, secret("ours"));
    assert.equal(describeEvent(await watch.next()), "ADDED ours");
  }),
  contractCase("watch: without a namespace, all of them", async (trial) => {
    const other = trial.unique("contract");
    await trial.create(namespaces, { metadata: { name: other } });
    trial.after(() => trial.delete(namespaces, other));
    const label = trial.unique("everywhere");
    const { resourceVersion } = await trial.list(secrets);
    const labelSelector = `case=${label}`;
    const events = trial.api.watch(secrets, { resourceVersion, labelSelector }, trial.signal);
    await trial.create(secrets, labelled("a", { case: label }));
    await trial.create(secrets, secret("b", {}, { namespace: other, labels: { case: label } }));
    const seen: string[] = [];
    for await (const event of events) {
      if (seen.push(describeEvent(event)) === 2) break;
    }
    assert.deepEqual(seen, ["ADDED a", "ADDED b"]);
  }),
  contractCase("watch: with a label selector, only what matches", async (trial) => {
    const watch = trial.watch(secrets, { resourceVersion: await versionNow(trial), labelSelector: "in=yes" });
    await trial.create(secrets, labelled("a", { in: "no" }));
    await trial.create(secrets, labelled("b", { in: "yes" }));
    assert.equal(describeEvent(await watch.next()), "ADDED b");
  }),
  contractCase(
    "watch: an object that begins to match is ADDED, one that no longer does is DELETED",
    async (trial) => {
      await trial.create(secrets, labelled("a", { in: "no" }));
      const watch = trial.watch(secrets, {
        resourceVersion: await versionNow(trial),
        labelSelector: "in=yes",
      });
      await relabel(trial, "a", { in: "yes" });
      await relabel(trial, "a", { in: "yes", more: "1" });
      await relabel(trial, "a", { in: "no" });
      await relabel(trial, "a", { in: "never" });
      await trial.delete(secrets, "a");
      await trial.create(secrets, labelled("b", { in: "yes" }));
      const seen = await watch.take(4);
      assert.deepEqual(seen.map(describeEvent), ["ADDED a", "MODIFIED a", "DELETED a", "ADDED b"]);
    },
  ),
  contractCase(
    "watch: the DELETED of an object that no longer matches has its last matching state",
    async (trial) => {
      await trial.create(secrets, labelled("a", { in: "yes" }));
      const watch = trial.watch(secrets, {
        resourceVersion: await versionNow(trial),
        labelSelector: "in=yes",
      });
      const changed = await relabel(trial, "a", { in: "no" });
      const event = await watch.next();
      assert.equal(event.type, "DELETED");
      assert.deepEqual(objectOf(event).metadata?.labels, { in: "yes" });
      assert.equal(objectOf(event).metadata?.resourceVersion, changed.metadata?.resourceVersion);
    },
  ),
  contractCase("watch: a field selector picks one object by name", async (trial) => {
    const resourceVersion = await versionNow(trial);
    const watch = trial.watch(secrets, { resourceVersion, fieldSelector: "metadata.name=b" });
    for (const name of ["a", "b", "c"]) await trial.create(secrets, secret(name));
    await trial.delete(secrets, "b");
    assert.deepEqual((await watch.take(2)).map(describeEvent), ["ADDED b", "DELETED b"]);
  }),
  contractCase("watch: a field selector on status sees objects come and go", async (trial) => {
    const { resourceVersion } = await trial.list(pods);
    const watch = trial.watch(pods, { resourceVersion, fieldSelector: "status.phase=Failed" });
    await trial.create(pods, boundPod("a"));
    trial.after(() => trial.delete(pods, "a", { gracePeriodSeconds: 0 }));
    await trial.patch(pods, "a", "merge", { status: { phase: "Failed" } }, { subresource: "status" });
    assert.equal(describeEvent(await watch.next()), "ADDED a");
  }),
  contractCase("watch: as metadata, events have neither spec nor status", async (trial) => {
    const { resourceVersion } = await trial.list(replicaSets);
    const watch = trial.watch(replicaSets, { resourceVersion, detail: "metadata" });
    await trial.create(replicaSets, replicaSet("a"));
    const object = objectOf(await watch.next());
    assert.equal(`${object.apiVersion} ${object.kind}`, "meta.k8s.io/v1 PartialObjectMetadata");
    assert.equal(at(object, "spec"), undefined);
    assert.equal(object.metadata?.name, "a");
  }),
  contractCase("watch: two watches of the same place see the same", async (trial) => {
    const resourceVersion = await versionNow(trial);
    const watches = [trial.watch(secrets, { resourceVersion }), trial.watch(secrets, { resourceVersion })];
    await trial.create(secrets, secret("a"));
    await relabel(trial, "a", { one: "1" });
    const [one, two] = await Promise.all(watches.map((watch) => watch.take(2)));
    assert.deepEqual(one, two);
  }),
  contractCase("watch: of objects in a namespace that does not exist yet", async (trial) => {
    const later = trial.unique("contract");
    const watch = trial.watch(secrets, { namespace: later, resourceVersion: await versionNow(trial) });
    await trial.create(namespaces, { metadata: { name: later } });
    trial.after(() => trial.delete(namespaces, later));
    await trial.create(secrets, secret("a", {}, { namespace: later }));
    assert.equal(describeEvent(await watch.next()), "ADDED a");
  }),
  contractCase("watch: cluster-wide objects", async (trial) => {
    const name = trial.unique("contract");
    const { resourceVersion } = await trial.list(namespaces);
    const watch = trial.watch(namespaces, { resourceVersion, fieldSelector: `metadata.name=${name}` });
    await trial.create(namespaces, { metadata: { name } });
    await trial.delete(namespaces, name);
    assert.deepEqual((await watch.take(2)).map(describeEvent), [`ADDED ${name}`, `MODIFIED ${name}`]);
  }),
];
