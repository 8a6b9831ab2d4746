// Server-side apply: the request itself, its preconditions and the forms of its refusals.
import assert from "node:assert/strict";
import { applyPatch } from "../client.ts";
import { contractCase } from "../contract-case.ts";
import {
  appsDeployment,
  appsDeployments,
  base64,
  container,
  pendingPod,
  pods,
  replicaSet,
  replicaSets,
  secret,
  secrets,
  unscheduled,
} from "../fixtures.ts";
import { at, managedBy, ownedFields } from "../manifest.ts";
import { invalid, refused } from "../refusal.ts";
import type { Trial } from "../trial.ts";

const otherUid = "00000000-0000-0000-0000-000000000000";

function applyRaw(trial: Trial, name: string, body: unknown, query: Record<string, string> = {}) {
  return trial.answer({
    method: "PATCH",
    path: trial.path(secrets, name),
    query: { fieldManager: "alpha", ...query },
    contentType: applyPatch,
    body,
  });
}

export const applyRequestCases = [
  contractCase("apply: the uid of the live object is accepted as a precondition", async (trial) => {
    const first = await trial.apply(secrets, secret("a", { key: "one" }));
    const next = secret("a", { key: "two" }, { uid: first.metadata?.uid });
    assert.equal(at(await trial.apply(secrets, next), "data.key"), base64("two"));
  }),
  contractCase("apply: another uid than the live one is refused as a change of the uid", async (trial) => {
    await trial.apply(secrets, secret("a", { key: "one" }));
    const other = secret("a", { key: "two" }, { uid: otherUid });
    await invalid(
      trial.apply(secrets, other, { force: true }),
      ["FieldValueInvalid metadata.uid"],
      /field is immutable/,
    );
    assert.equal(at(await trial.read(secrets, "a"), "data.key"), base64("one"));
  }),
  contractCase("apply: with a uid, nothing is created", async (trial) => {
    await refused(trial.apply(secrets, secret("a", {}, { uid: otherUid })), {
      status: 409,
      reason: "Conflict",
      message: /uid mismatch: the provided object specified uid 0{8}-.*, and no existing object was found/,
    });
    assert.equal(await trial.find(secrets, "a"), undefined);
  }),
  contractCase("apply: the live resourceVersion is accepted as a precondition", async (trial) => {
    const { metadata } = await trial.apply(secrets, secret("a", { key: "one" }));
    const next = secret("a", { key: "two" }, { resourceVersion: metadata?.resourceVersion });
    assert.equal(at(await trial.apply(secrets, next), "data.key"), base64("two"));
  }),
  contractCase("apply: an older resourceVersion is refused with a conflict", async (trial) => {
    const { metadata } = await trial.apply(secrets, secret("a", { key: "one" }));
    await trial.apply(secrets, secret("a", { key: "two" }));
    const stale = secret("a", { key: "three" }, { resourceVersion: metadata?.resourceVersion });
    await refused(trial.apply(secrets, stale, { force: true }), {
      status: 409,
      reason: "Conflict",
      message: /the object has been modified; please apply your changes to the latest version and try again/,
    });
  }),
  contractCase(
    "apply: a resourceVersion does not keep a missing object from being created",
    async (trial) => {
      const result = await trial.applyResult(secrets, secret("a", {}, { resourceVersion: "1" }));
      assert.equal(result.kind, "created");
    },
  ),
  contractCase("apply: metadata alone can be applied", async (trial) => {
    await trial.create(replicaSets, replicaSet("a", { replicas: 0 }));
    const applied = await trial.apply(replicaSets, { metadata: { name: "a", annotations: { one: "1" } } });
    assert.equal(at(applied, "spec.replicas"), 0);
    assert.deepEqual(ownedFields(applied, "alpha"), ["metadata.annotations.one"]);
  }),
  contractCase("apply: an answer as metadata has no data", async (trial) => {
    const applied = await trial.apply(secrets, secret("a", { key: "value" }), { detail: "metadata" });
    assert.equal(applied.kind, "PartialObjectMetadata");
    assert.equal(at(applied, "data"), undefined);
    assert.ok(applied.metadata?.resourceVersion);
  }),
  contractCase("apply: a null is a field that is not sent", async (trial) => {
    await trial.apply(secrets, secret("a", { key: "one" }, { labels: { one: "1" } }));
    const applied = await trial.apply(secrets, {
      metadata: { name: "a", labels: null },
      data: { key: base64("one") },
    } as never);
    assert.equal(applied.metadata?.labels, undefined);
  }),
  contractCase("apply: without a field manager it is refused", async (trial) => {
    const answer = trial.answer({
      method: "PATCH",
      path: trial.path(secrets, "a"),
      contentType: applyPatch,
      body: { apiVersion: "v1", kind: "Secret", metadata: { name: "a" } },
    });
    await invalid(answer, ["FieldValueRequired fieldManager"], /is required for apply patch/);
  }),
  contractCase("apply: a field manager of more than 128 characters is refused", async (trial) => {
    await invalid(trial.apply(secrets, secret("a"), { fieldManager: "m".repeat(129) }), [
      "FieldValueTooLong fieldManager",
    ]);
  }),
  contractCase("apply: managedFields in the body are refused", async (trial) => {
    const manifest = secret("a", {}, { managedFields: [{ manager: "alpha", operation: "Apply" }] });
    await refused(trial.apply(secrets, manifest), {
      status: 400,
      reason: "BadRequest",
      message: /metadata\.managedFields must be nil/,
    });
  }),
  contractCase("apply: a body with another name than the path is refused", async (trial) => {
    await refused(applyRaw(trial, "a", { apiVersion: "v1", kind: "Secret", metadata: { name: "b" } }), {
      status: 400,
      reason: "BadRequest",
      message: /the name of the object \(b\) does not match the name on the URL \(a\)/,
    });
  }),
  contractCase("apply: a body without a name is refused", async (trial) => {
    await refused(applyRaw(trial, "a", { apiVersion: "v1", kind: "Secret", metadata: {} }), {
      status: 400,
      reason: "BadRequest",
      message: /name must be provided/,
    });
  }),
  contractCase("apply: a body of another kind is refused", async (trial) => {
    await refused(applyRaw(trial, "a", { apiVersion: "v1", kind: "Service", metadata: { name: "a" } }), {
      status: 400,
      reason: "BadRequest",
    });
  }),
  contractCase("apply: a body without a kind is refused", async (trial) => {
    await refused(applyRaw(trial, "a", { apiVersion: "v1", metadata: { name: "a" } }), {
      status: 400,
      reason: "BadRequest",
      message: /invalid object type/,
    });
  }),
  contractCase("apply: a body of another namespace is refused", async (trial) => {
    const metadata = { name: "a", namespace: "other" };
    await refused(applyRaw(trial, "a", { apiVersion: "v1", kind: "Secret", metadata }), {
      status: 400,
      reason: "BadRequest",
      message: /namespace/,
    });
  }),
  contractCase("apply: an invalid name is refused with 422", async (trial) => {
    const body = { apiVersion: "v1", kind: "Secret", metadata: { name: "Not_A_Name" } };
    await invalid(applyRaw(trial, "Not_A_Name", body), ["FieldValueInvalid metadata.name"]);
  }),
  contractCase("apply: an unknown field is refused whatever the field validation", async (trial) => {
    for (const fieldValidation of ["Ignore", "Warn", "Strict"] as const) {
      await refused(trial.apply(secrets, { ...secret("a"), nonsense: 1 }, { fieldValidation }), {
        status: 500,
        reason: "",
        message: /failed to create typed patch object .*: \.nonsense: field not declared in schema/,
      });
    }
  }),
  contractCase("apply: a field of the wrong type is refused", async (trial) => {
    await refused(trial.apply(replicaSets, replicaSet("a", { replicas: "three" })), {
      status: 500,
      reason: "",
      message: /\.spec\.replicas/,
    });
  }),
  contractCase("apply: two list items with the same key are refused", async (trial) => {
    const twice = appsDeployment("a", {}, { containers: [container("app"), container("app")] });
    await refused(trial.apply(appsDeployments, twice), {
      status: 500,
      reason: "",
      message: /duplicate entries for key \[name="app"\]/,
    });
  }),
  contractCase("apply: a list item without its key is refused as invalid", async (trial) => {
    const nameless = appsDeployment("a", {}, { containers: [{ image: "app:1" }] });
    await invalid(trial.apply(appsDeployments, nameless), [
      "FieldValueRequired spec.template.spec.containers[0].name",
    ]);
  }),
  contractCase("apply: a dry run answers as if, and stores nothing", async (trial) => {
    const result = await trial.applyResult(secrets, secret("a", { key: "value" }), { dryRun: true });
    assert.equal(result.kind, "created");
    assert.equal(at(result.object, "data.key"), base64("value"));
    assert.equal(await trial.find(secrets, "a"), undefined);
  }),
  contractCase("apply: a dry run onto what exists leaves it and its version as they are", async (trial) => {
    const before = await trial.apply(secrets, secret("a", { key: "one" }));
    const dry = await trial.apply(secrets, secret("a", { key: "two" }), { dryRun: true });
    assert.equal(at(dry, "data.key"), base64("two"));
    assert.deepEqual(await trial.read(secrets, "a"), before);
  }),
  contractCase("apply: a dry run still says what is invalid", async (trial) => {
    await invalid(trial.apply(replicaSets, replicaSet("a", { replicas: -1 }), { dryRun: true }), [
      "FieldValueInvalid spec.replicas",
    ]);
  }),
  contractCase("apply: force on a new object is accepted", async (trial) => {
    assert.equal((await trial.applyResult(secrets, secret("a"), { force: true })).kind, "created");
  }),
  contractCase("apply: force with a patch that is no apply is refused", async (trial) => {
    await trial.create(secrets, secret("a"));
    await invalid(trial.patch(secrets, "a", "merge", { data: {} }, { query: { force: "true" } }), [
      "FieldValueForbidden force",
    ]);
  }),
  contractCase("apply: to the status endpoint changes status and nothing else", async (trial) => {
    await trial.create(pods, pendingPod("a"));
    const manifest = { metadata: { name: "a" }, status: { message: "hello" } };
    const applied = await trial.apply(pods, manifest, { subresource: "status" });
    assert.equal(at(applied, "status.message"), "hello");
    assert.equal(at(applied, "spec.schedulerName"), unscheduled);
    assert.deepEqual(ownedFields(applied, "alpha"), ["status.message"]);
    assert.equal(managedBy(applied, "alpha")[0]?.subresource, "status");
  }),
  contractCase("apply: to the status endpoint creates nothing", async (trial) => {
    const manifest = { metadata: { name: "a" }, status: { message: "hello" } };
    await refused(trial.apply(pods, manifest, { subresource: "status" }), {
      status: 404,
      reason: "NotFound",
    });
  }),
  contractCase("apply: status sent to the main endpoint is ignored and not owned", async (trial) => {
    const applied = await trial.apply(replicaSets, { ...replicaSet("a"), status: { replicas: 7 } });
    assert.notEqual(at(applied, "status.replicas"), 7);
    assert.ok(!ownedFields(applied, "alpha").some((path) => path.startsWith("status")));
  }),
  contractCase("apply: one manager's main and status entries stand side by side", async (trial) => {
    await trial.apply(pods, pendingPod("a"));
    const applied = await trial.apply(
      pods,
      { metadata: { name: "a" }, status: { message: "hello" } },
      { subresource: "status" },
    );
    const entries = managedBy(applied, "alpha").map(
      (entry) => `${entry.operation} ${entry.subresource ?? ""}`,
    );
    assert.deepEqual(entries.sort(), ["Apply ", "Apply status"]);
  }),
  contractCase(
    "apply: onto an object that is being deleted changes it and does not bring it back",
    async (trial) => {
      await trial.apply(secrets, secret("a", {}, { finalizers: ["contract.example/hold"] }));
      trial.after(() => trial.patch(secrets, "a", "merge", { metadata: { finalizers: null } }));
      await trial.delete(secrets, "a");
      const applied = await trial.apply(secrets, secret("a", { key: "value" }), { fieldManager: "beta" });
      assert.ok(applied.metadata?.deletionTimestamp);
      assert.ok(at(applied, "data.key"));
    },
  ),
];
