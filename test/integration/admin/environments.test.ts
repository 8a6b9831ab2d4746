// Environments and their secrets through the admin API: values go in and never come out.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { Code, ConnectError } from "@connectrpc/connect";
import { FieldProblemSchema, ObjectKind } from "../../../src/gen/krane/admin/v1/admin_pb.ts";
import { startAdminServer } from "../../support/admin-server.ts";
import { applyDeployment } from "../../support/deployment-messages.ts";
import { hasCode } from "../../support/refusals.ts";

const region = "local.dev";
const environmentId = "env_1a2B3c4D";

async function serve(t: TestContext) {
  const server = await startAdminServer();
  t.after(() => server.stop());
  return { ...server, admins: server.client() };
}

test("an environment is made known, changed at the version that was seen, and listed", async (t) => {
  const { admins } = await serve(t);
  const apply = (id: string, workspaceId: string, expectedVersion?: bigint) =>
    admins.applyEnvironment({
      region,
      id,
      workspaceId,
      projectId: "proj_1",
      ...(expectedVersion !== undefined && { expectedVersion }),
    });
  assert.equal((await apply("env_b", "ws_1", 0n)).environment?.version, 1n);
  assert.equal((await apply("env_b", "ws_1")).environment?.version, 1n, "nothing changed");
  await assert.rejects(apply("env_b", "ws_2", 0n), hasCode(Code.Aborted, /version 1/));
  assert.equal((await apply("env_b", "ws_2", 1n)).environment?.version, 2n);
  await apply("env_a", "ws_1");
  const { environments } = await admins.listEnvironments({ region });
  assert.deepEqual(
    environments.map(({ id, workspaceId, projectId }) => `${id} ${workspaceId} ${projectId}`),
    ["env_a ws_1 proj_1", "env_b ws_2 proj_1"],
  );
});

test("of secrets only the names come back", async (t) => {
  const { admins } = await serve(t);
  const described = { region, id: environmentId, workspaceId: "ws_1", projectId: "proj_1" };
  await admins.applyEnvironment(described);
  const set = (name: string, encrypted: string) =>
    admins.setSecret({ region, environmentId, name, encrypted });
  await set("B_KEY", "sealed-b");
  const { environment } = await set("A_KEY", "sealed-a");
  assert.deepEqual([environment?.id, environment?.secretNames], [environmentId, ["A_KEY", "B_KEY"]]);
  const after = await admins.applyEnvironment(described);
  assert.deepEqual(after.environment?.secretNames, ["A_KEY", "B_KEY"]);
  const unset = await admins.unsetSecret({ region, environmentId, name: "B_KEY" });
  assert.deepEqual(unset.environment?.secretNames, ["A_KEY"]);
  await assert.rejects(
    admins.unsetSecret({ region, environmentId, name: "B_KEY" }),
    hasCode(Code.NotFound, /no secret B_KEY/),
  );
  await assert.rejects(
    admins.unsetSecret({ region, environmentId: "env_none", name: "B_KEY" }),
    hasCode(Code.NotFound),
  );
});

test("events tell who set which secret, and never to what", async (t) => {
  const { admins } = await serve(t);
  await admins.applyEnvironment({ region, id: environmentId, workspaceId: "ws_1", projectId: "proj_1" });
  await admins.setSecret({ region, environmentId, name: "KEY", encrypted: "sealed-value" });
  await admins.unsetSecret({ region, environmentId, name: "KEY" });
  await admins.deleteEnvironment({ region, id: environmentId });
  const { events } = await admins.listEvents({ region, kind: ObjectKind.ENVIRONMENT, id: environmentId });
  assert.deepEqual(
    events.map(({ ref, by, event, version, outcome }) =>
      `${ref?.id} ${by} ${event} v${version} ${outcome}`.trim(),
    ),
    [
      `${environmentId} ann removed v3`,
      `${environmentId} ann secret_unset v3 KEY`,
      `${environmentId} ann secret_set v2 KEY`,
      `${environmentId} ann set v1`,
    ],
  );
  assert.ok(events.every(({ ref }) => ref?.kind === ObjectKind.ENVIRONMENT));
  const ref = { region, kind: ObjectKind.ENVIRONMENT, id: environmentId };
  await assert.rejects(admins.getObject({ ref }), hasCode(Code.InvalidArgument, /not a cluster object/));
});

test("an environment that was never applied takes no secret, and does not come to be by one", async (t) => {
  const { admins, store } = await serve(t);
  const call = admins.setSecret({ region, environmentId: "env_typo", name: "KEY", encrypted: "sealed" });
  await assert.rejects(call, hasCode(Code.NotFound, /no environment env_typo .*kind Environment/));
  assert.deepEqual(await store.environments(region, "", 100), []);
});

test("a secret that no pod could take is refused by its field", async (t) => {
  const { admins, store } = await serve(t);
  await admins.applyEnvironment({ region, id: environmentId, workspaceId: "ws_1", projectId: "proj_1" });
  const fieldsOf = async (name: string, encrypted: string, id = environmentId) => {
    const call = admins.setSecret({ region, environmentId: id, name, encrypted });
    const error = await call.then(() => assert.fail("it was taken"), ConnectError.from);
    assert.equal(error.code, Code.InvalidArgument);
    return error.findDetails(FieldProblemSchema).map(({ path }) => path);
  };
  assert.deepEqual(await fieldsOf("1KEY", "x"), ["name"]);
  assert.deepEqual(await fieldsOf("UNKEY_TOKEN_PATH", "x"), ["name"], "krane sets this one itself");
  assert.deepEqual(await fieldsOf("__proto__", "x"), ["name"], "a message cannot hold this one");
  assert.deepEqual(await fieldsOf("", ""), ["encrypted", "name"]);
  assert.deepEqual(await fieldsOf("KEY", "x", "not an id"), ["environment_id"]);
  assert.deepEqual(await fieldsOf("KEY", "x".repeat(100_000)), ["encrypted"]);
  assert.equal((await store.environment(region, environmentId))?.secrets.size, 0);
});

test("an environment goes once nothing of it is wanted, and its secrets with it", async (t) => {
  const { admins } = await serve(t);
  await admins.applyEnvironment({
    region,
    id: environmentId,
    workspaceId: "ws_1a2B3c4D",
    projectId: "proj_1a2B3c4D",
  });
  await admins.setSecret({ region, environmentId, name: "KEY", encrypted: "sealed" });
  const spec = { spec: { case: "deployment", value: applyDeployment() } } as const;
  await admins.applyObject({ region, spec });
  const forget = () => admins.deleteEnvironment({ region, id: environmentId });
  await assert.rejects(forget(), hasCode(Code.FailedPrecondition, /d_1a2B3c4D/));
  await admins.deleteObject({ ref: { region, kind: 1, id: "d_1a2B3c4D" } });
  await forget();
  await assert.rejects(forget(), hasCode(Code.NotFound));
  assert.deepEqual((await admins.listEnvironments({ region })).environments, []);
});

test("an environment does not change hands with its secrets, or with what is wanted of it", async (t) => {
  const { admins, store } = await serve(t);
  const value = applyDeployment();
  const { workspaceId, projectId } = value;
  const belongTo = (workspace: string) =>
    admins.applyEnvironment({ region, id: environmentId, workspaceId: workspace, projectId });
  await belongTo(workspaceId);
  await admins.setSecret({ region, environmentId, name: "KEY", encrypted: "sealed" });
  const isRefused = (why: RegExp) => hasCode(Code.FailedPrecondition, why);
  await assert.rejects(belongTo("ws_thief"), isRefused(/workspace_id must stay .*unset/s));
  await admins.applyObject({ region, spec: { spec: { case: "deployment", value } } });
  await admins.unsetSecret({ region, environmentId, name: "KEY" });
  await assert.rejects(belongTo("ws_thief"), isRefused(/workspace_id must stay .*delete it first/s));
  assert.equal((await store.environment(region, environmentId))?.workspaceId, workspaceId);
  await admins.deleteObject({ ref: { region, kind: ObjectKind.DEPLOYMENT, id: value.deploymentId } });
  assert.equal((await belongTo("ws_heir")).environment?.workspaceId, "ws_heir");
});

test("a deployment takes no secrets of an environment that belongs to somebody else", async (t) => {
  const { admins, store } = await serve(t);
  const spec = { spec: { case: "deployment", value: applyDeployment() } } as const;
  const { workspaceId, projectId, deploymentId } = spec.spec.value;
  const belongTo = async (workspace: string, project: string) => {
    await admins.applyEnvironment({ region, id: environmentId, workspaceId: workspace, projectId: project });
    await admins.setSecret({ region, environmentId, name: "KEY", encrypted: "sealed" });
  };
  const fields = async () => {
    const error = await admins
      .applyObject({ region, spec })
      .then(() => assert.fail("it was taken"), ConnectError.from);
    assert.equal(error.code, Code.InvalidArgument);
    return error.findDetails(FieldProblemSchema).map(({ path }) => path);
  };
  await belongTo("ws_other", projectId);
  assert.deepEqual(await fields(), ["deployment.workspace_id"]);
  await admins.deleteEnvironment({ region, id: environmentId });
  await belongTo("ws_other", "proj_other");
  assert.deepEqual(await fields(), ["deployment.workspace_id", "deployment.project_id"]);
  assert.equal(await store.row(region, "deployment", deploymentId), undefined);
  await admins.deleteEnvironment({ region, id: environmentId });
  await belongTo(workspaceId, projectId);
  await admins.applyObject({ region, spec });
  const row = await store.row(region, "deployment", deploymentId);
  assert.match(Buffer.from(row?.spec.encryptedEnvironmentVariables ?? []).toString(), /sealed/);
});
