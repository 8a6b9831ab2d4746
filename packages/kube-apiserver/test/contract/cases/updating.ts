// Update (PUT): optimistic concurrency, what may not change, and when the generation grows.
import assert from "node:assert/strict";
import { contractCase } from "../contract-case.ts";
import {
  base64,
  boundPod,
  lease,
  leases,
  pendingPod,
  pods,
  replicaSet,
  replicaSets,
  secret,
  secrets,
  service,
  services,
} from "../fixtures.ts";
import { at, type Manifest, ownedFields } from "../manifest.ts";
import { invalid, refused } from "../refusal.ts";

function changed(object: Manifest, fields: Readonly<Record<string, unknown>>): Manifest {
  return { ...object, ...fields };
}

export const updatingCases = [
  contractCase("update: replaces the object and gives it a new version", async (trial) => {
    const before = await trial.create(secrets, secret("a", { one: "1", two: "2" }));
    const after = await trial.update(secrets, changed(before, { data: { one: base64("x") } }));
    assert.deepEqual(at(after, "data"), { one: base64("x") });
    assert.notEqual(after.metadata?.resourceVersion, before.metadata?.resourceVersion);
    assert.equal(after.metadata?.uid, before.metadata?.uid);
  }),
  contractCase("update: an old resourceVersion is refused with a conflict", async (trial) => {
    const before = await trial.create(secrets, secret("a", { one: "1" }));
    await trial.update(secrets, changed(before, { data: { one: base64("2") } }));
    await refused(trial.update(secrets, changed(before, { data: { one: base64("3") } })), {
      status: 409,
      reason: "Conflict",
      message:
        /Operation cannot be fulfilled on secrets "a": the object has been modified; please apply your changes to the latest version and try again/,
    });
  }),
  contractCase("update: without a resourceVersion it is unconditional", async (trial) => {
    await trial.create(secrets, secret("a", { one: "1" }));
    const after = await trial.update(secrets, secret("a", { one: "2" }));
    assert.equal(at(after, "data.one"), base64("2"));
  }),
  contractCase("update: the same object again keeps its version", async (trial) => {
    const before = await trial.create(secrets, secret("a", { one: "1" }));
    assert.deepEqual(await trial.update(secrets, before), before);
  }),
  contractCase("update: what is not there is not found", async (trial) => {
    await refused(trial.update(secrets, secret("a")), { status: 404, reason: "NotFound" });
  }),
  contractCase("update: a Lease that is not there is created", async (trial) => {
    const answer = await trial.send({
      method: "PUT",
      path: trial.path(leases, "a"),
      contentType: "application/json",
      body: { apiVersion: "coordination.k8s.io/v1", kind: "Lease", ...lease("a") },
    });
    assert.equal(answer.status, 201);
  }),
  contractCase("update: a Service that is not there is created, or refused as invalid", async (trial) => {
    await trial.update(services, service("a"));
    assert.ok(at(await trial.read(services, "a"), "spec.clusterIP"));
    await invalid(trial.update(services, service("b", { ports: [] })), ["FieldValueRequired spec.ports"]);
  }),
  contractCase("update: another uid is refused with a conflict", async (trial) => {
    await trial.create(secrets, secret("a"));
    const other = secret("a", {}, { uid: "00000000-0000-0000-0000-000000000000" });
    await refused(trial.update(secrets, other), {
      status: 409,
      reason: "Conflict",
      message: /Precondition failed: UID in precondition: 0{8}-.*, UID in object meta:/,
    });
  }),
  contractCase("update: a body with another name than the path is refused", async (trial) => {
    await trial.create(secrets, secret("a"));
    const request = { path: trial.path(secrets, "a"), contentType: "application/json" };
    const body = { apiVersion: "v1", kind: "Secret", metadata: { name: "b" } };
    await refused(trial.answer({ method: "PUT", ...request, body }), {
      status: 400,
      reason: "BadRequest",
      message: /the name of the object \(b\) does not match the name on the URL \(a\)/,
    });
  }),
  contractCase("update: creation time and uid cannot be written", async (trial) => {
    const before = await trial.create(secrets, secret("a"));
    const metadata = { ...before.metadata, creationTimestamp: "2001-01-01T00:00:00Z" };
    const after = await trial.update(secrets, { ...before, metadata });
    assert.equal(after.metadata?.creationTimestamp, before.metadata?.creationTimestamp);
  }),
  contractCase("update: fields left out are removed, whoever owned them", async (trial) => {
    await trial.apply(secrets, secret("a", { one: "1" }, { labels: { one: "1" } }));
    const after = await trial.update(secrets, secret("a", { two: "2" }));
    assert.deepEqual(at(after, "data"), { two: base64("2") });
    assert.equal(after.metadata?.labels, undefined);
    assert.deepEqual(ownedFields(after, "alpha"), []);
  }),
  contractCase("update: empty managedFields reset the record of ownership", async (trial) => {
    const before = await trial.apply(secrets, secret("a", { one: "1" }));
    const after = await trial.update(secrets, {
      ...before,
      metadata: { ...before.metadata, managedFields: [{}] },
    });
    assert.deepEqual(ownedFields(after, "alpha"), []);
  }),
  contractCase("update: status sent to the main endpoint is ignored", async (trial) => {
    const before = await trial.create(pods, pendingPod("a"));
    const after = await trial.update(pods, { ...before, status: { phase: "Running" } });
    assert.equal(at(after, "status.phase"), "Pending");
  }),
  contractCase("update: the status endpoint changes status and leaves the rest", async (trial) => {
    const before = await trial.create(pods, pendingPod("a"));
    const status = { ...(at(before, "status") as object), message: "hello" };
    const metadata = { ...before.metadata, labels: { one: "1" } };
    const after = await trial.update(pods, { ...before, metadata, spec: {}, status }, "status");
    assert.equal(at(after, "status.message"), "hello");
    assert.deepEqual(at(after, "spec"), at(before, "spec"));
  }),
  contractCase("generation: grows when the spec changes", async (trial) => {
    await trial.create(replicaSets, replicaSet("a"));
    const after = await trial.patch(replicaSets, "a", "merge", { spec: { minReadySeconds: 1 } });
    assert.equal(after.metadata?.generation, 2);
  }),
  contractCase("generation: stays when labels, annotations or status change", async (trial) => {
    const before = await trial.create(pods, pendingPod("a"));
    const labelled = await trial.patch(pods, "a", "merge", { metadata: { labels: { one: "1" } } });
    const reported = await trial.patch(
      pods,
      "a",
      "merge",
      { status: { message: "hello" } },
      { subresource: "status" },
    );
    assert.equal(labelled.metadata?.generation, before.metadata?.generation);
    assert.equal(reported.metadata?.generation, before.metadata?.generation);
  }),
  contractCase("immutable: the selector of a ReplicaSet", async (trial) => {
    await trial.create(replicaSets, replicaSet("a"));
    const labels = { app: "other" };
    const other = replicaSet("a", {
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: at(replicaSet("a"), "spec.template.spec") },
    });
    await invalid(
      trial.apply(replicaSets, other, { force: true }),
      ["FieldValueInvalid spec.selector"],
      /field is immutable/,
    );
  }),
  contractCase("immutable: the type of a Secret", async (trial) => {
    const before = await trial.create(secrets, secret("a"));
    await invalid(
      trial.update(secrets, { ...before, type: "example.com/other" }),
      ["FieldValueInvalid type"],
      /field is immutable/,
    );
  }),
  contractCase("immutable: a Secret that says so", async (trial) => {
    const before = await trial.create(secrets, { ...secret("a", { one: "1" }), immutable: true });
    await invalid(trial.update(secrets, { ...before, data: { one: base64("2") } }), [
      "FieldValueForbidden data",
    ]);
  }),
  contractCase("immutable: what may not change is named before what is wrong", async (trial) => {
    const before = await trial.create(secrets, secret("a"));
    await invalid(trial.update(secrets, { ...before, type: "kubernetes.io/dockerconfigjson" }), [
      "FieldValueInvalid type",
      "FieldValueRequired data[.dockerconfigjson]",
    ]);
  }),
  contractCase("immutable: a pod's spec but for its images and a few others", async (trial) => {
    const before = await trial.create(pods, boundPod("a"));
    trial.after(() => trial.delete(pods, "a", { gracePeriodSeconds: 0 }));
    const image = await trial.patch(pods, "a", "json", [
      { op: "replace", path: "/spec/containers/0/image", value: "other:2" },
    ]);
    assert.equal(at(image, "spec.containers.0.image"), "other:2");
    await invalid(
      trial.patch(pods, "a", "json", [{ op: "add", path: "/spec/hostname", value: "x" }]),
      ["FieldValueForbidden spec"],
      /pod updates may not change fields other than/,
    );
    assert.equal((await trial.read(pods, "a")).metadata?.uid, before.metadata?.uid);
  }),
];
