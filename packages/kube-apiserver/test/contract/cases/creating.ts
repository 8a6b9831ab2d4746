// Create: what the server fills in, what it takes from the caller and what it refuses.
import assert from "node:assert/strict";
import { contractCase } from "../contract-case.ts";
import { base64, pendingPod, pods, replicaSet, replicaSets, secret, secrets } from "../fixtures.ts";
import { at, managedBy, ownedFields } from "../manifest.ts";
import { refused } from "../refusal.ts";

export const creatingCases = [
  contractCase("create: answers 201 with the stored object", async (trial) => {
    const answer = await trial.send({
      method: "POST",
      path: trial.path(secrets),
      contentType: "application/json",
      body: { apiVersion: "v1", kind: "Secret", ...secret("a", { key: "value" }) },
    });
    assert.equal(answer.status, 201);
    assert.deepEqual(answer.body, await trial.read(secrets, "a"));
  }),
  contractCase("create: a name that is taken is refused with AlreadyExists", async (trial) => {
    await trial.create(secrets, secret("a"));
    await refused(trial.create(secrets, secret("a")), {
      status: 409,
      reason: "AlreadyExists",
      message: /secrets "a" already exists/,
    });
  }),
  contractCase("create: generateName becomes a name with five more characters", async (trial) => {
    const one = await trial.create(secrets, { metadata: { generateName: "some-" } });
    const two = await trial.create(secrets, { metadata: { generateName: "some-" } });
    assert.match(one.metadata?.name ?? "", /^some-[bcdfghjklmnpqrstvwxz2456789]{5}$/);
    assert.equal(one.metadata?.generateName, "some-");
    assert.notEqual(one.metadata?.name, two.metadata?.name);
  }),
  contractCase("create: a name given beside generateName wins", async (trial) => {
    const made = await trial.create(secrets, { metadata: { name: "mine", generateName: "some-" } });
    assert.equal(made.metadata?.name, "mine");
  }),
  contractCase("create: uid, times and generation are the server's, whatever was sent", async (trial) => {
    const sent = replicaSet("a");
    const made = await trial.create(replicaSets, {
      ...sent,
      metadata: {
        ...sent.metadata,
        uid: "00000000-0000-0000-0000-000000000000",
        creationTimestamp: "2001-01-01T00:00:00Z",
        generation: 7,
      },
    });
    assert.notEqual(made.metadata?.uid, "00000000-0000-0000-0000-000000000000");
    assert.notEqual(made.metadata?.creationTimestamp, "2001-01-01T00:00:00Z");
    assert.equal(made.metadata?.generation, 1);
  }),
  contractCase("create: a kind without generation has none", async (trial) => {
    assert.equal((await trial.create(secrets, secret("a"))).metadata?.generation, undefined);
  }),
  contractCase("create: a resourceVersion is refused", async (trial) => {
    await refused(trial.create(secrets, secret("a", {}, { resourceVersion: "1" })), {
      status: 500,
      reason: "",
      message: /resourceVersion should not be set on objects to be created/,
    });
  }),
  contractCase("create: status is not the creator's to set", async (trial) => {
    const made = await trial.create(replicaSets, { ...replicaSet("a"), status: { replicas: 5 } });
    assert.deepEqual(at(made, "status"), { replicas: 0 });
  }),
  contractCase("create: a deletionTimestamp is not the creator's to set", async (trial) => {
    const made = await trial.create(
      secrets,
      secret("a", {}, { deletionTimestamp: "2001-01-01T00:00:00Z", deletionGracePeriodSeconds: 3 }),
    );
    assert.equal(made.metadata?.deletionTimestamp, undefined);
    assert.equal(made.metadata?.deletionGracePeriodSeconds, undefined);
  }),
  contractCase("create: a new pod is Pending with its quality of service", async (trial) => {
    const made = await trial.create(pods, pendingPod("a"));
    assert.equal(at(made, "status.phase"), "Pending");
    assert.equal(at(made, "status.qosClass"), "BestEffort");
  }),
  contractCase("create: stringData of a Secret becomes data and is not kept", async (trial) => {
    const made = await trial.create(secrets, {
      ...secret("a", { one: "1", two: "2" }),
      stringData: { two: "two" },
    });
    assert.deepEqual(at(made, "data"), { one: base64("1"), two: base64("two") });
    assert.equal(at(made, "stringData"), undefined);
  }),
  contractCase("create: the fields belong to the manager that is named, as an Update", async (trial) => {
    const made = await trial.create(secrets, secret("a", { key: "value" }), { fieldManager: "somebody" });
    assert.deepEqual(ownedFields(made, "somebody", "Update"), ["data.", "data.key", "type"]);
    const [entry] = managedBy(made, "somebody");
    assert.equal(`${entry?.apiVersion} ${entry?.fieldsType}`, "v1 FieldsV1");
  }),
  contractCase("create: without a manager's name, the program's name is taken", async (trial) => {
    const made = await trial.create(secrets, secret("a"));
    assert.equal(made.metadata?.managedFields?.[0]?.manager, trial.target.userAgent);
  }),
  contractCase("create: a dry run answers as if, and stores nothing", async (trial) => {
    const answer = await trial.create(secrets, secret("a"), { dryRun: true });
    assert.ok(answer.metadata?.uid);
    assert.equal(answer.metadata?.resourceVersion, undefined);
    assert.equal(await trial.find(secrets, "a"), undefined);
  }),
  contractCase("create: a dry run of what exists is refused like the real thing", async (trial) => {
    await trial.create(secrets, secret("a"));
    await refused(trial.create(secrets, secret("a"), { dryRun: true }), {
      status: 409,
      reason: "AlreadyExists",
    });
  }),
  contractCase("create: an unknown dryRun value is refused", async (trial) => {
    await refused(
      trial.answer({
        method: "POST",
        path: trial.path(secrets),
        query: { dryRun: "Some" },
        contentType: "application/json",
        body: { apiVersion: "v1", kind: "Secret", ...secret("a") },
      }),
      { status: 422, reason: "Invalid", causes: ["FieldValueNotSupported dryRun"] },
    );
  }),
  contractCase("create: an unknown field is dropped unless validation is strict", async (trial) => {
    const made = await trial.create(secrets, { ...secret("a"), nonsense: 1 });
    assert.equal(at(made, "nonsense"), undefined);
    await refused(trial.create(secrets, { ...secret("b"), nonsense: 1 }, { fieldValidation: "Strict" }), {
      status: 400,
      reason: "BadRequest",
      message: /strict decoding error: unknown field "nonsense"/,
    });
  }),
  contractCase("create: an unknown fieldValidation is refused", async (trial) => {
    await refused(
      trial.answer({
        method: "POST",
        path: trial.path(secrets),
        query: { fieldValidation: "Sometimes" },
        contentType: "application/json",
        body: { apiVersion: "v1", kind: "Secret", ...secret("a") },
      }),
      { status: 422, reason: "Invalid", causes: ["FieldValueNotSupported fieldValidation"] },
    );
  }),
  contractCase("create: a field of the wrong type is refused before anything is validated", async (trial) => {
    await refused(trial.create(replicaSets, replicaSet("a", { replicas: "three" })), {
      status: 400,
      reason: "BadRequest",
      message: /spec\.replicas|ReplicaSetSpec\.replicas|ReplicaSetSpec\.spec\.replicas/,
    });
  }),
  contractCase("create: another kind's object is refused", async (trial) => {
    await refused(
      trial.answer({
        method: "POST",
        path: trial.path(secrets),
        contentType: "application/json",
        body: { apiVersion: "v1", kind: "Service", metadata: { name: "a" } },
      }),
      { status: 400, reason: "BadRequest" },
    );
  }),
  contractCase("create: a body that is not an object is refused", async (trial) => {
    await refused(
      trial.answer({
        method: "POST",
        path: trial.path(secrets),
        contentType: "application/json",
        body: "nonsense",
      }),
      { status: 400, reason: "BadRequest" },
    );
  }),
  contractCase("create: a media type that the server cannot read is refused with 415", async (trial) => {
    await refused(
      trial.answer({
        method: "POST",
        path: trial.path(secrets),
        contentType: "text/csv",
        body: { apiVersion: "v1", kind: "Secret", ...secret("a") },
      }),
      { status: 415, reason: "UnsupportedMediaType" },
    );
  }),
];
