// Merge patch, JSON patch and strategic merge patch.
import assert from "node:assert/strict";
import { contractCase } from "../contract-case.ts";
import { appsDeployment, appsDeployments, base64, container, image, secret, secrets } from "../fixtures.ts";
import { at, managedBy, ownedFields } from "../manifest.ts";
import { invalid, refused } from "../refusal.ts";

export const patchingCases = [
  contractCase("merge patch: sets, adds and removes fields", async (trial) => {
    await trial.create(secrets, secret("a", { keep: "1", change: "2", drop: "3" }));
    const patched = await trial.patch(secrets, "a", "merge", {
      data: { change: base64("x"), drop: null, add: base64("y") },
    });
    assert.deepEqual(at(patched, "data"), { add: base64("y"), change: base64("x"), keep: base64("1") });
  }),
  contractCase("merge patch: replaces a list as a whole", async (trial) => {
    await trial.create(appsDeployments, appsDeployment("a"));
    const spec = { template: { spec: { containers: [container("other")] } } };
    const patched = await trial.patch(appsDeployments, "a", "merge", { spec });
    assert.equal((at(patched, "spec.template.spec.containers") as unknown[]).length, 1);
    assert.equal(at(patched, "spec.template.spec.containers.0.name"), "other");
  }),
  contractCase("merge patch: the fields belong to the patcher, as an Update", async (trial) => {
    await trial.apply(secrets, secret("a", { one: "1" }));
    const query = { fieldManager: "patcher" };
    const patched = await trial.patch(secrets, "a", "merge", { data: { two: base64("2") } }, { query });
    assert.deepEqual(ownedFields(patched, "patcher", "Update"), ["data.two"]);
  }),
  contractCase("merge patch: that changes nothing keeps the version and the owners", async (trial) => {
    const before = await trial.apply(secrets, secret("a", { one: "1" }));
    const query = { fieldManager: "patcher" };
    const patched = await trial.patch(secrets, "a", "merge", { data: { one: base64("1") } }, { query });
    assert.equal(patched.metadata?.resourceVersion, before.metadata?.resourceVersion);
    assert.deepEqual(managedBy(patched, "patcher"), []);
  }),
  contractCase("merge patch: an old resourceVersion in it is refused with a conflict", async (trial) => {
    const before = await trial.create(secrets, secret("a", { one: "1" }));
    await trial.patch(secrets, "a", "merge", { data: { one: base64("2") } });
    const patch = {
      metadata: { resourceVersion: before.metadata?.resourceVersion },
      data: { one: base64("3") },
    };
    await refused(trial.patch(secrets, "a", "merge", patch), { status: 409, reason: "Conflict" });
  }),
  contractCase("merge patch: another uid in it is refused as a change of the uid", async (trial) => {
    await trial.create(secrets, secret("a"));
    const patch = { metadata: { uid: "00000000-0000-0000-0000-000000000000" } };
    await invalid(trial.patch(secrets, "a", "merge", patch), ["FieldValueInvalid metadata.uid"]);
  }),
  contractCase("merge patch: of what is not there is not found", async (trial) => {
    await refused(trial.patch(secrets, "none", "merge", {}), { status: 404, reason: "NotFound" });
  }),
  contractCase("merge patch: that is no object is a bad request", async (trial) => {
    await trial.create(secrets, secret("a"));
    await refused(trial.patch(secrets, "a", "merge", [1]), { status: 400, reason: "BadRequest" });
  }),
  contractCase("merge patch: the name cannot be changed", async (trial) => {
    await trial.create(secrets, secret("a"));
    await refused(trial.patch(secrets, "a", "merge", { metadata: { name: "b" } }), {
      status: 400,
      reason: "BadRequest",
      message: /the name of the object \(b\) does not match the name on the URL \(a\)/,
    });
  }),
  contractCase("merge patch: a dry run stores nothing", async (trial) => {
    const before = await trial.create(secrets, secret("a", { one: "1" }));
    const query = { dryRun: "All" };
    const dry = await trial.patch(secrets, "a", "merge", { data: { one: base64("2") } }, { query });
    assert.equal(at(dry, "data.one"), base64("2"));
    assert.deepEqual(await trial.read(secrets, "a"), before);
  }),
  contractCase("JSON patch: add, replace and remove", async (trial) => {
    await trial.create(secrets, secret("a", { keep: "1", change: "2", drop: "3" }));
    const patched = await trial.patch(secrets, "a", "json", [
      { op: "test", path: "/data/keep", value: base64("1") },
      { op: "replace", path: "/data/change", value: base64("x") },
      { op: "remove", path: "/data/drop" },
      { op: "add", path: "/metadata/labels", value: { one: "1" } },
    ]);
    assert.deepEqual(at(patched, "data"), { change: base64("x"), keep: base64("1") });
    assert.deepEqual(patched.metadata?.labels, { one: "1" });
  }),
  contractCase("JSON patch: inserts into a list, and appends with -", async (trial) => {
    await trial.create(appsDeployments, appsDeployment("a"));
    const patched = await trial.patch(appsDeployments, "a", "json", [
      { op: "add", path: "/spec/template/spec/containers/0", value: container("first") },
      { op: "add", path: "/spec/template/spec/containers/-", value: container("last") },
    ]);
    const containers = at(patched, "spec.template.spec.containers") as readonly { readonly name: string }[];
    assert.deepEqual(
      containers.map((one) => one.name),
      ["first", "app", "last"],
    );
  }),
  contractCase("JSON patch: ~1 in a path stands for a slash", async (trial) => {
    await trial.create(secrets, secret("a", {}, { annotations: { "example.com/one": "1" } }));
    const patched = await trial.patch(secrets, "a", "json", [
      { op: "replace", path: "/metadata/annotations/example.com~1one", value: "2" },
    ]);
    assert.equal(patched.metadata?.annotations?.["example.com/one"], "2");
  }),
  contractCase("JSON patch: a failed test is refused with 422 and changes nothing", async (trial) => {
    const before = await trial.create(secrets, secret("a", { one: "1" }));
    const patch = [
      { op: "replace", path: "/data/one", value: base64("2") },
      { op: "test", path: "/metadata/uid", value: "another" },
    ];
    await refused(trial.patch(secrets, "a", "json", patch), {
      status: 422,
      reason: "Invalid",
      message: /the server rejected our request due to an error in our request/,
    });
    assert.deepEqual(await trial.read(secrets, "a"), before);
  }),
  contractCase("JSON patch: removing what is not there is refused with 422", async (trial) => {
    await trial.create(secrets, secret("a"));
    await refused(trial.patch(secrets, "a", "json", [{ op: "remove", path: "/data/none" }]), {
      status: 422,
      reason: "Invalid",
    });
  }),
  contractCase("JSON patch: replacing a member that is not there adds it", async (trial) => {
    await trial.create(secrets, secret("a"));
    const patched = await trial.patch(secrets, "a", "json", [
      { op: "replace", path: "/metadata/labels", value: { one: "1" } },
    ]);
    assert.deepEqual(patched.metadata?.labels, { one: "1" });
  }),
  contractCase("JSON patch: adding below what is not there is refused with 422", async (trial) => {
    await trial.create(secrets, secret("a"));
    await refused(
      trial.patch(secrets, "a", "json", [{ op: "add", path: "/metadata/labels/one", value: "1" }]),
      {
        status: 422,
        reason: "Invalid",
      },
    );
  }),
  contractCase("JSON patch: that is no list is a bad request", async (trial) => {
    await trial.create(secrets, secret("a"));
    await refused(trial.patch(secrets, "a", "json", { data: {} }), { status: 400, reason: "BadRequest" });
  }),
  contractCase("JSON patch: an invalid result is refused with its causes", async (trial) => {
    await trial.create(appsDeployments, appsDeployment("a"));
    const patch = [{ op: "replace", path: "/spec/replicas", value: -1 }];
    await invalid(trial.patch(appsDeployments, "a", "json", patch), ["FieldValueInvalid spec.replicas"]);
  }),
  contractCase("strategic merge patch: merges containers by name", async (trial) => {
    await trial.create(appsDeployments, appsDeployment("a"));
    const spec = { template: { spec: { containers: [{ name: "app", env: [{ name: "A", value: "1" }] }] } } };
    const patched = await trial.patch(appsDeployments, "a", "strategic", { spec });
    assert.equal(at(patched, "spec.template.spec.containers.0.image"), image);
    assert.deepEqual(at(patched, "spec.template.spec.containers.0.env"), [{ name: "A", value: "1" }]);
  }),
  contractCase("strategic merge patch: $patch delete removes an item", async (trial) => {
    const two = { containers: [container("app"), container("side")] };
    await trial.create(appsDeployments, appsDeployment("a", {}, two));
    const spec = { template: { spec: { containers: [{ name: "side", $patch: "delete" }] } } };
    const patched = await trial.patch(appsDeployments, "a", "strategic", { spec });
    assert.equal((at(patched, "spec.template.spec.containers") as unknown[]).length, 1);
  }),
  contractCase("a patch of an unknown type is refused with 415", async (trial) => {
    await trial.create(secrets, secret("a"));
    const answer = await trial.send({
      method: "PATCH",
      path: trial.path(secrets, "a"),
      contentType: "application/json",
      body: {},
    });
    assert.equal(answer.status, 415);
    assert.equal(at(answer.body, "reason"), "UnsupportedMediaType");
  }),
];
