// Server-side apply: two managers that want different things.
import assert from "node:assert/strict";
import { contractCase } from "../contract-case.ts";
import {
  appsDeployment,
  appsDeployments,
  base64,
  container,
  replicaSet,
  replicaSets,
  secret,
  secrets,
} from "../fixtures.ts";
import { at, ownedFields } from "../manifest.ts";
import { refused } from "../refusal.ts";

const beta = { fieldManager: "beta" };
const conflict = { status: 409, reason: "Conflict" };

export const applyConflictCases = [
  contractCase(
    "conflict: another value for an owned field is refused with the field and its owner",
    async (trial) => {
      await trial.apply(secrets, secret("a", { key: "one" }));
      const error = await refused(trial.apply(secrets, secret("a", { key: "two" }), beta), {
        ...conflict,
        message: /Apply failed with 1 conflict: conflict with "alpha": \.data\.key/,
        causes: ["FieldManagerConflict .data.key"],
      });
      assert.equal(error.causes[0]?.message, 'conflict with "alpha"');
    },
  ),
  contractCase("conflict: the refused apply changed nothing", async (trial) => {
    const before = await trial.apply(secrets, secret("a", { key: "one" }));
    await refused(trial.apply(secrets, secret("a", { key: "two", other: "3" }), beta), conflict);
    assert.deepEqual(await trial.read(secrets, "a"), before);
  }),
  contractCase("conflict: each field has a cause of its own", async (trial) => {
    await trial.apply(secrets, secret("a", { one: "1", two: "2", three: "3" }));
    await refused(trial.apply(secrets, secret("a", { one: "x", two: "y", three: "3" }), beta), {
      ...conflict,
      message: /Apply failed with 2 conflicts: conflicts with "alpha":/,
      causes: ["FieldManagerConflict .data.one", "FieldManagerConflict .data.two"],
    });
  }),
  contractCase("conflict: each owner of the field has a cause of its own", async (trial) => {
    await trial.apply(secrets, secret("a", { key: "one" }));
    await trial.apply(secrets, secret("a", { key: "one" }), beta);
    const error = await refused(
      trial.apply(secrets, secret("a", { key: "two" }), { fieldManager: "gamma" }),
      conflict,
    );
    assert.deepEqual(error.causes.map((cause) => cause.message).sort(), [
      'conflict with "alpha"',
      'conflict with "beta"',
    ]);
  }),
  contractCase("conflict: the path into a list goes by the item's key", async (trial) => {
    await trial.apply(appsDeployments, appsDeployment("a"));
    const other = appsDeployment("a", {}, { containers: [container("app", { image: "other:1" })] });
    await refused(trial.apply(appsDeployments, other, beta), {
      ...conflict,
      causes: ['FieldManagerConflict .spec.template.spec.containers[name="app"].image'],
    });
  }),
  contractCase("conflict: an owner that updated is named with its operation's version", async (trial) => {
    await trial.create(replicaSets, replicaSet("a", { replicas: 0 }), { fieldManager: "editor" });
    const error = await refused(
      trial.apply(replicaSets, { metadata: { name: "a" }, spec: { minReadySeconds: 1, replicas: 2 } }),
      { ...conflict, causes: ["FieldManagerConflict .spec.replicas"] },
    );
    assert.match(error.causes[0]?.message ?? "", /^conflict with "editor" using apps\/v1( at .*Z)?$/);
  }),
  contractCase("conflict: the same value is no conflict", async (trial) => {
    await trial.apply(secrets, secret("a", { key: "one" }));
    const both = await trial.apply(secrets, secret("a", { key: "one" }), beta);
    assert.deepEqual(ownedFields(both, "alpha"), ["data.key"]);
    assert.deepEqual(ownedFields(both, "beta"), ["data.key"]);
  }),
  contractCase("conflict: the same manager never conflicts with its own apply", async (trial) => {
    await trial.apply(secrets, secret("a", { key: "one" }));
    const applied = await trial.apply(secrets, secret("a", { key: "two" }));
    assert.equal(at(applied, "data.key"), base64("two"));
  }),
  contractCase("conflict: the same manager's earlier Update does conflict with its apply", async (trial) => {
    await trial.create(secrets, secret("a", { key: "one" }), { fieldManager: "alpha" });
    await refused(trial.apply(secrets, secret("a", { key: "two" })), {
      ...conflict,
      causes: ["FieldManagerConflict .data.key"],
    });
  }),
  contractCase("conflict: an atomic list is one field", async (trial) => {
    const withArgs = (...args: readonly string[]) =>
      appsDeployment("a", {}, { containers: [container("app", { args })] });
    await trial.apply(appsDeployments, withArgs("a", "b"));
    await refused(trial.apply(appsDeployments, withArgs("a", "b", "c"), beta), {
      ...conflict,
      causes: ['FieldManagerConflict .spec.template.spec.containers[name="app"].args'],
    });
  }),
  contractCase("conflict: force takes the field over and the other loses it", async (trial) => {
    await trial.apply(secrets, secret("a", { key: "one", other: "1" }));
    const forced = await trial.apply(secrets, secret("a", { key: "two" }), { ...beta, force: true });
    assert.equal(at(forced, "data.key"), base64("two"));
    assert.deepEqual(ownedFields(forced, "alpha"), ["data.other"]);
    assert.deepEqual(ownedFields(forced, "beta"), ["data.key"]);
  }),
  contractCase("conflict: after force, the first owner's next apply is the one refused", async (trial) => {
    await trial.apply(secrets, secret("a", { key: "one" }));
    await trial.apply(secrets, secret("a", { key: "two" }), { ...beta, force: true });
    await refused(trial.apply(secrets, secret("a", { key: "one" })), {
      ...conflict,
      message: /conflict with "beta"/,
    });
  }),
  contractCase("conflict: after force, what the first owner leaves out stays", async (trial) => {
    await trial.apply(secrets, secret("a", { key: "one", other: "1" }));
    await trial.apply(secrets, secret("a", { key: "two" }), { ...beta, force: true });
    const applied = await trial.apply(secrets, secret("a", { other: "1" }));
    assert.equal(at(applied, "data.key"), base64("two"));
  }),
  contractCase("conflict: force shares a field whose value is the same", async (trial) => {
    await trial.apply(secrets, secret("a", { key: "one" }));
    const forced = await trial.apply(secrets, secret("a", { key: "one" }), { ...beta, force: true });
    assert.deepEqual(ownedFields(forced, "alpha"), ["data.key"]);
  }),
  contractCase("conflict: an Update is never refused for another's ownership", async (trial) => {
    await trial.apply(secrets, secret("a", { key: "one" }));
    const patched = await trial.patch(secrets, "a", "merge", { data: { key: base64("two") } });
    assert.equal(at(patched, "data.key"), base64("two"));
  }),
  contractCase(
    "conflict: scaling by somebody else conflicts with the replicas that were applied",
    async (trial) => {
      await trial.apply(replicaSets, replicaSet("a", { replicas: 0 }));
      const scale = { spec: { replicas: 1 } };
      await trial.patch(replicaSets, "a", "merge", scale, {
        subresource: "scale",
        query: { fieldManager: "scaler" },
      });
      const error = await refused(trial.apply(replicaSets, replicaSet("a", { replicas: 0 })), {
        ...conflict,
        causes: ["FieldManagerConflict .spec.replicas"],
      });
      assert.match(error.causes[0]?.message ?? "", /^conflict with "scaler" with subresource "scale"/);
    },
  ),
];
