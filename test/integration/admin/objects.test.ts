// What people do to objects through the admin API, over HTTP.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Client, Code, ConnectError } from "@connectrpc/connect";
import { ReportDeploymentStatusRequest_Update_Instance_Status as Status } from "../../../src/gen/ctrl/v1/deployment_pb.ts";
import {
  type AdminService,
  ApplyObjectResponse_Change as Change,
  ObjectView_Desired as Desired,
  FieldProblemSchema,
  ObjectKind,
  type ObjectSpecSchema,
  ObjectView_Phase as Phase,
} from "../../../src/gen/krane/admin/v1/admin_pb.ts";
import { ObjectStatus_Outcome as Outcome } from "../../../src/gen/krane/v1/agent_pb.ts";
import { type AdminServer, startAdminServer } from "../../support/admin-server.ts";
import { applyDeployment, environmentOf, utf8 } from "../../support/deployment-messages.ts";
import { applyPolicy } from "../../support/policy-messages.ts";
import { hasCode } from "../../support/refusals.ts";
import { applySentinel } from "../../support/sentinel-messages.ts";

type SpecInit = MessageInitShape<typeof ObjectSpecSchema>;
type DeploymentInit = Parameters<typeof applyDeployment>[0];

const deploymentSpec = (more: DeploymentInit = {}): SpecInit => ({
  spec: { case: "deployment", value: applyDeployment(more) },
});
const policySpec = (more: Parameters<typeof applyPolicy>[0] = {}): SpecInit => ({
  spec: { case: "policy", value: applyPolicy(more) },
});
const sentinelSpec: SpecInit = { spec: { case: "sentinel", value: applySentinel() } };

/** Of a newer client. */
const unknownKind = 99 as ObjectKind;

const web = { region: "local.dev", kind: ObjectKind.DEPLOYMENT, id: "d_1a2B3c4D" };
const gate = { region: "local.dev", kind: ObjectKind.SENTINEL, id: "se_1a2B3c4D" };

async function serve(t: TestContext): Promise<AdminServer & { admins: Client<typeof AdminService> }> {
  const server = await startAdminServer({ regions: ["local.dev", "us-east-1.aws"] });
  t.after(() => server.stop());
  const admins = server.client();
  for (const region of ["local.dev", "us-east-1.aws"])
    await admins.applyEnvironment({ region, ...environmentOf() });
  return { ...server, admins };
}

test("an apply says what it did, and what changes nothing makes no version", async (t) => {
  const { admins, region } = await serve(t);
  const apply = async (more: DeploymentInit = {}, dryRun = false) => {
    const { version, change } = await admins.applyObject({ region, spec: deploymentSpec(more), dryRun });
    return [Number(version), change];
  };
  assert.deepEqual(await apply({}, true), [0, Change.CREATED]);
  assert.deepEqual(await apply(), [1, Change.CREATED]);
  assert.deepEqual(await apply(), [1, Change.UNCHANGED]);
  assert.deepEqual(await apply({ replicas: 2 }, true), [1, Change.CONFIGURED]);
  assert.deepEqual(await apply({ replicas: 2 }), [2, Change.CONFIGURED]);
  await admins.deleteObject({ ref: web });
  assert.deepEqual(await apply({ replicas: 2 }), [4, Change.CREATED]);
});

test("an apply that was meant for another version is aborted, and told the one there is", async (t) => {
  const { admins, region } = await serve(t);
  const apply = (replicas: number, expectedVersion: bigint) =>
    admins.applyObject({ region, spec: deploymentSpec({ replicas }), expectedVersion });
  await apply(1, 0n);
  await assert.rejects(apply(2, 0n), hasCode(Code.Aborted, /it is at version 1/));
  await assert.rejects(
    admins.scaleObject({ ref: web, replicas: 3, expectedVersion: 7n }),
    hasCode(Code.Aborted, /version 1/),
  );
  await assert.rejects(admins.deleteObject({ ref: web, expectedVersion: 7n }), hasCode(Code.Aborted));
  assert.equal((await apply(2, 1n)).version, 2n);
});

test("what the agent would park is refused here, with every field by its path", async (t) => {
  const { admins, region, store } = await serve(t);
  const bad = { image: "not an image", port: 70_000, k8sNamespace: "kube-system" };
  const refused = await admins
    .applyObject({ region, spec: deploymentSpec(bad) })
    .then(() => assert.fail("it was taken"), ConnectError.from);
  assert.equal(refused.code, Code.InvalidArgument);
  const problems = refused.findDetails(FieldProblemSchema);
  assert.deepEqual(problems.map(({ path }) => path).sort(), [
    "deployment.image",
    "deployment.k8s_namespace",
    "deployment.port",
  ]);
  assert.ok(problems.every(({ problem }) => problem !== ""));
  assert.equal((await store.rows(region, "deployment")).length, 0);
});

test("every other bad request names its field too", async (t) => {
  const { admins, region } = await serve(t);
  const fieldsOf = async (call: Promise<unknown>) => {
    const error = await call.then(() => assert.fail("it was taken"), ConnectError.from);
    assert.equal(error.code, Code.InvalidArgument, error.message);
    return error.findDetails(FieldProblemSchema).map(({ path }) => path);
  };
  assert.deepEqual(await fieldsOf(admins.applyObject({})), ["region", "spec"]);
  assert.deepEqual(
    await fieldsOf(admins.applyObject({ region, spec: deploymentSpec(), deploymentId: "d" })),
    ["deployment_id"],
  );
  assert.deepEqual(await fieldsOf(admins.getObject({})), ["ref.kind", "ref.region", "ref.id"]);
  assert.deepEqual(await fieldsOf(admins.getObject({ ref: { ...web, kind: unknownKind } })), ["ref.kind"]);
  assert.deepEqual(await fieldsOf(admins.scaleObject({ ref: web, replicas: -1 })), ["replicas"]);
  assert.deepEqual(
    await fieldsOf(admins.scaleObject({ ref: { ...web, kind: ObjectKind.POLICY }, replicas: 1 })),
    ["ref.kind"],
  );
  assert.deepEqual(await fieldsOf(admins.listObjects({})), ["region"]);
  assert.deepEqual(await fieldsOf(admins.listObjects({ region, kind: unknownKind })), ["kind"]);
  assert.deepEqual(await fieldsOf(admins.listEvents({})), ["region"]);
  assert.deepEqual(await fieldsOf(admins.releaseDeletion({})), ["controller", "key", "region"]);
  assert.deepEqual(await fieldsOf(admins.listStrangers({})), ["region"]);
  assert.deepEqual(await fieldsOf(admins.adoptObjects({})), ["objects", "region"]);
  await assert.rejects(
    admins.listObjects({ region, pageToken: "?" }),
    hasCode(Code.InvalidArgument, /page_token/),
  );
});

test("what an object belongs to and where it is cannot change while it is wanted", async (t) => {
  const { admins, region, store } = await serve(t);
  const apply = (spec: SpecInit, dryRun = false) => admins.applyObject({ region, spec, dryRun });
  const problemsOf = async (spec: SpecInit, dryRun = false) => {
    const error = await apply(spec, dryRun).then(() => assert.fail("it was taken"), ConnectError.from);
    assert.equal(error.code, Code.InvalidArgument, error.message);
    return error.findDetails(FieldProblemSchema).map(({ path, problem }) => `${path} ${problem}`);
  };
  const rest = "while deployment d_1a2B3c4D exists; use a new id";
  const environmentId = "env_1a2B3c4D";
  await admins.applyEnvironment({
    region,
    id: environmentId,
    workspaceId: "ws_1a2B3c4D",
    projectId: "proj_1a2B3c4D",
  });
  await admins.setSecret({ region, environmentId, name: "KEY", encrypted: "sealed-for-the-old-one" });
  await apply(deploymentSpec());
  const moved = deploymentSpec({ environmentId: "env_other", replicas: 2 });
  const environment = `deployment.environment_id must stay "env_1a2B3c4D" ${rest}`;
  assert.deepEqual(await problemsOf(moved), [environment]);
  assert.deepEqual(await problemsOf(moved, true), [environment], "a dry run says so too");
  const all = { workspaceId: "ws_2", projectId: "p_2", k8sNamespace: "other", k8sName: "other" };
  assert.deepEqual(
    (await problemsOf(deploymentSpec(all))).map((text) => text.split(" ")[0]),
    ["workspace_id", "project_id", "k8s_namespace", "k8s_name"].map((field) => `deployment.${field}`),
  );
  assert.equal((await store.row(region, "deployment", web.id))?.version, 1n, "nothing was changed");

  await apply(sentinelSpec);
  const sentinel = { spec: { case: "sentinel", value: applySentinel({ environmentId: "env_2" }) } } as const;
  assert.match((await problemsOf(sentinel)).join(), /^sentinel\.environment_id must stay /);
  await apply(policySpec());
  assert.match(
    (await problemsOf(policySpec({ k8sNamespace: "other" }))).join(),
    /^policy\.k8s_namespace must stay "acme" while policy net_1a2B3c4D exists/,
  );

  await admins.deleteObject({ ref: web });
  await assert.rejects(apply(moved), hasCode(Code.InvalidArgument, /environment_id is "env_other"/));
  await admins.applyEnvironment({ region, ...environmentOf(), id: "env_other" });
  await apply(moved);
  const row = await store.row(region, "deployment", web.id);
  assert.equal(
    row?.spec.encryptedEnvironmentVariables.length,
    0,
    "it has the secrets of its new environment",
  );
});

test("a name that is taken, a name that changes and an unknown region are refused", async (t) => {
  const { admins, region } = await serve(t);
  await admins.applyObject({ region, spec: deploymentSpec() });
  const apply = (more: DeploymentInit, where = region) =>
    admins.applyObject({ region: where, spec: deploymentSpec(more) });
  await assert.rejects(apply({ deploymentId: "d_2" }), hasCode(Code.AlreadyExists, /d_1a2B3c4D/));
  await assert.rejects(
    apply({ k8sName: "other" }),
    hasCode(Code.InvalidArgument, /k8s_name must stay "web"/),
  );
  await assert.rejects(apply({}, "nowhere"), hasCode(Code.FailedPrecondition, /nowhere is not registered/));
  assert.equal((await apply({}, "us-east-1.aws")).version, 1n, "regions have nothing to do with one another");
  await admins.deleteObject({ ref: web });
  await assert.rejects(apply({ k8sName: "other" }), hasCode(Code.FailedPrecondition, /is called web/));
});

test("a scale changes the number of pods and nothing else", async (t) => {
  const { admins, region, store } = await serve(t);
  await assert.rejects(admins.scaleObject({ ref: web, replicas: 3 }), hasCode(Code.NotFound));
  await admins.applyObject({ region, spec: deploymentSpec({ image: "registry.example/web:7" }) });
  const { version, replicasBefore } = await admins.scaleObject({ ref: web, replicas: 3 });
  assert.deepEqual([version, replicasBefore], [2n, 1]);
  const row = await store.row(region, "deployment", web.id);
  assert.deepEqual([row?.spec.replicas, row?.spec.image], [3, "registry.example/web:7"]);
  await admins.applyObject({ region, spec: sentinelSpec });
  assert.equal((await admins.scaleObject({ ref: gate, replicas: 0 })).replicasBefore, 1);
  await admins.deleteObject({ ref: web });
  await assert.rejects(admins.scaleObject({ ref: web, replicas: 3 }), hasCode(Code.NotFound));
});

test("a deletion takes the policies of the deployment along, and may be ordered twice", async (t) => {
  const { admins, region, store } = await serve(t);
  await assert.rejects(admins.deleteObject({ ref: web }), hasCode(Code.NotFound));
  await admins.applyObject({ region, spec: deploymentSpec() });
  await admins.applyObject({ region, spec: policySpec(), deploymentId: web.id });
  const free = policySpec({ ciliumNetworkPolicyId: "net_free", k8sName: "free" });
  await admins.applyObject({ region, spec: free });
  assert.equal((await admins.deleteObject({ ref: web })).version, 4n);
  assert.equal((await admins.deleteObject({ ref: web })).version, 4n);
  const policies = await store.rows(region, "policy");
  assert.deepEqual(policies.map(({ id, desired }) => `${id} ${desired}`).sort(), [
    "net_1a2B3c4D stopped",
    "net_free running",
  ]);
});

test("a deployment takes the secrets of its environment when it comes to be, and never sends them", async (t) => {
  const { admins, region, store } = await serve(t);
  const environmentId = "env_1a2B3c4D";
  const blobOf = async () => {
    const row = await store.row(region, "deployment", web.id);
    return new TextDecoder().decode(row?.spec.encryptedEnvironmentVariables);
  };
  await admins.applyEnvironment({
    region,
    id: environmentId,
    workspaceId: "ws_1a2B3c4D",
    projectId: "proj_1a2B3c4D",
  });
  await admins.setSecret({ region, environmentId, name: "B_KEY", encrypted: "sealed-b" });
  await admins.setSecret({ region, environmentId, name: "A_KEY", encrypted: "sealed-a" });
  await admins.applyObject({ region, spec: deploymentSpec() });
  const first = '{"secrets":{"A_KEY":"sealed-a","B_KEY":"sealed-b"}}';
  assert.equal(await blobOf(), first);

  await admins.setSecret({ region, environmentId, name: "C_KEY", encrypted: "sealed-c" });
  const again = await admins.applyObject({ region, spec: deploymentSpec() });
  assert.equal(again.change, Change.UNCHANGED, "a deployment keeps what it has");
  await admins.scaleObject({ ref: web, replicas: 2 });
  assert.equal(await blobOf(), first);

  const { object } = await admins.getObject({ ref: web });
  assert.deepEqual(object?.secretNames, ["A_KEY", "B_KEY"]);
  assert.equal(
    JSON.stringify(object, (_, value) => (typeof value === "bigint" ? Number(value) : value)).includes(
      "sealed",
    ),
    false,
  );
  assert.ok(object?.spec?.spec.case === "deployment");
  assert.equal(object.spec.spec.value.encryptedEnvironmentVariables.length, 0);

  await admins.deleteObject({ ref: web });
  await admins.applyObject({ region, spec: deploymentSpec() });
  assert.match(await blobOf(), /C_KEY/, "one that is created again gets the current secrets");
  const own = utf8('{"secrets":{"OWN":"sealed-own"}}');
  await admins.applyObject({ region, spec: deploymentSpec({ encryptedEnvironmentVariables: own }) });
  assert.equal(await blobOf(), '{"secrets":{"OWN":"sealed-own"}}', "a request that brings its own wins");
});

test("an object is shown with what is wanted, what the agent says and what runs", async (t) => {
  const { admins, region, agentClient } = await serve(t);
  await assert.rejects(admins.getObject({ ref: web }), hasCode(Code.NotFound, /no deployment d_1a2B3c4D/));
  await admins.applyObject({ region, spec: deploymentSpec() });
  const phase = async () => (await admins.getObject({ ref: web })).object?.phase;
  assert.equal(await phase(), Phase.WAITING);
  const agents = agentClient();
  const state = {
    instanceId: "ins_1",
    controllers: [{ name: "deployments", stream: { cursor: 1n, settledUpTo: 1n } }],
  };
  await agents.reportAgentState({ state });
  assert.equal(await phase(), Phase.PROGRESSING);
  const instances = [{ k8sName: "web-1", address: "10-0-0-1:8080", status: Status.RUNNING }];
  await agents.reportDeploymentStatus({ change: { case: "update", value: { k8sName: "web", instances } } });
  const { object, agent } = await admins.getObject({ ref: web });
  assert.deepEqual(
    [object?.phase, object?.settled, object?.desired, object?.namespace, object?.name, object?.version],
    [Phase.READY, true, Desired.RUNNING, "acme", "web", 1n],
  );
  assert.equal(object?.deployment?.instances[0]?.k8sName, "web-1");
  assert.ok((object?.deployment?.reportedAtMs ?? 0n) > 0n);
  assert.deepEqual([agent?.region, agent?.newestVersion, agent?.state?.instanceId], [region, 1n, "ins_1"]);
  const trouble = {
    controller: "deployments",
    id: web.id,
    key: "acme/web",
    desiredVersion: 2n,
    outcome: Outcome.PARKED,
  };
  await admins.scaleObject({ ref: web, replicas: 2 });
  await agents.reportAgentState({ state, troubledObjects: [{ ...trouble, reason: "no" }] });
  assert.equal((await admins.getObject({ ref: web })).object?.trouble?.reason, "no");
  assert.equal(await phase(), Phase.FAILED);
});

test("a deletion is not shown as done where the agent refused more than it lists", async (t) => {
  const { admins, region, agentClient } = await serve(t);
  const agents = agentClient();
  await admins.applyObject({ region, spec: sentinelSpec });
  const { version } = await admins.deleteObject({ ref: gate });
  const refused = (count: number) =>
    Array.from({ length: count }, (_, index) => ({
      controller: "sentinels",
      id: `se_${index}`,
      key: `sentinel/s${index}`,
      desiredVersion: 1n,
      outcome: Outcome.CONFLICT,
    }));
  const report = (conflicts: number) =>
    agents.reportAgentState({
      state: {
        instanceId: "ins_1",
        controllers: [{ name: "sentinels", stream: { cursor: version }, conflicts }],
      },
      troubledObjects: refused(Math.min(conflicts, 100)),
    });
  await report(101);
  const { object } = await admins.getObject({ ref: gate });
  assert.deepEqual([object?.phase, object?.settled], [Phase.DELETING, false]);
  assert.match(object?.trouble?.reason ?? "", /101 objects .* lists only 100/);
  const { objects } = await admins.listObjects({ region });
  assert.deepEqual(
    objects.map(({ phase }) => phase),
    [Phase.DELETING],
  );
  await report(100);
  assert.equal((await admins.getObject({ ref: gate })).object?.phase, Phase.DELETED);
});

test("lists come in pages of kind and id, and leave out what is deleted", async (t) => {
  const { admins, region, admin, agentClient } = await serve(t);
  for (const name of ["c", "a", "b"]) {
    const more = { deploymentId: `d_${name}`, k8sName: name, environmentId: `env_${name}` };
    await admins.applyEnvironment({ region, ...environmentOf(), id: more.environmentId });
    await admins.applyObject({ region, spec: deploymentSpec(more) });
  }
  await admins.applyObject({ region, spec: sentinelSpec });
  await admins.applyObject({ region, spec: policySpec() });
  const list = async (request: object): Promise<readonly string[]> => {
    const ids: string[] = [];
    let pageToken = "";
    do {
      const page = await admins.listObjects({ region, ...request, pageToken });
      ids.push(page.objects.map(({ ref }) => ref?.id).join(" "));
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
    return ids;
  };
  const everything = "d_a d_b d_c se_1a2B3c4D net_1a2B3c4D";
  assert.deepEqual(await list({}), [everything]);
  assert.deepEqual(await list({ pageSize: 2 }), ["d_a d_b", "d_c se_1a2B3c4D", "net_1a2B3c4D"]);
  assert.deepEqual(await list({ pageSize: 5 }), [everything], "a full last page has no next one");
  assert.deepEqual(await list({ kind: ObjectKind.SENTINEL }), ["se_1a2B3c4D"]);
  assert.deepEqual(await list({ environmentId: "env_b" }), ["d_b"]);
  await admins.deleteObject({ ref: { ...web, id: "d_b" } });
  assert.deepEqual(await list({ kind: ObjectKind.DEPLOYMENT }), ["d_a d_b d_c"], "it is still being deleted");
  const gone = { case: "delete", value: { k8sName: "b" } } as const;
  await agentClient().reportDeploymentStatus({ change: gone });
  assert.deepEqual(await list({ kind: ObjectKind.DEPLOYMENT }), ["d_a d_c"]);
  assert.deepEqual(await list({ kind: ObjectKind.DEPLOYMENT, includeDeleted: true }), ["d_a d_b d_c"]);
  assert.equal((await admin.deployments(region)).length, 3);
});

test("agents are listed by region, whether heard of or not", async (t) => {
  const { admins, region, agentClient } = await serve(t);
  await admins.applyObject({ region, spec: deploymentSpec() });
  await agentClient().heartbeat({ region: { name: "local", platform: "dev" } });
  const { agents, nowMs } = await admins.listAgents({});
  assert.deepEqual(
    agents.map((agent) => [agent.region, agent.newestVersion]),
    [
      ["local.dev", 1n],
      ["us-east-1.aws", 0n],
    ],
  );
  assert.ok((agents[0]?.heartbeatAtMs ?? 0n) > 0n && (agents[0]?.heartbeatAtMs ?? 0n) <= nowMs);
  assert.equal(agents[1]?.heartbeatAtMs, 0n);
  assert.equal((await admins.listAgents({ region })).agents.length, 1);
});
