// Orders of SchedulerService on a real Kubernetes: the agent is a process with the chart's service account, its roles
// and its admission policy, and the attacker is an administrator of the tenant's namespace.
import assert from "node:assert/strict";
import { after, before, type TestContext, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { ApplyDeploymentRequestSchema, SchedulerService } from "../../src/gen/krane/v1/scheduler_pb.ts";
import { desiredReplicaSet } from "../../src/kinds/deployment/pod-template.ts";
import { parseApplyDeployment } from "../../src/kinds/deployment/spec.ts";
import { agentToken } from "../integration/agent/agent-world.ts";
import { dev as region, serveControlPlane, token } from "../integration/server/served-control-plane.ts";
import { startAgentProcess } from "../support/agent-process.ts";
import { loadAuditedCalls } from "../support/audit-log.ts";
import { clusterUnderTest } from "../support/cluster-under-test.ts";
import { installRights, type ServiceAccountAccess } from "../support/deployed-rights.ts";
import { applyDeployment } from "../support/deployment-messages.ts";
import { eventually } from "../support/eventually.ts";
import { forgedOrder } from "../support/forged-order.ts";
import { buildKrane } from "../support/krane-process.ts";
import { isListed } from "../support/listed-calls.ts";

const cluster = clusterUnderTest();
const schedulerToken = "kst_of_the_test";
const tenant = "tenant-admin";
const highestVersion = 2n ** 63n - 1n;
let krane: Awaited<ReturnType<typeof buildKrane>>;
let account: ServiceAccountAccess;
let callsBefore = 0;

before(async () => {
  krane = await buildKrane();
  callsBefore = (await loadAuditedCalls(cluster.auditLogPath)).length;
  await cluster.empty();
  account = await installRights(cluster, ["agent", "scheduler"]);
  await cluster.kubectl(["create", "namespace", "acme"]);
  await cluster.kubectl([
    ...["-n", "acme", "create", "rolebinding", tenant],
    ...["--clusterrole=admin", `--user=${tenant}`],
  ]);
});
after(async () => {
  await account.remove();
  await cluster.empty();
  await krane.remove();
});

async function createRegion(t: TestContext) {
  const { admin, running } = await serveControlPlane(t, "h2c");
  const place = {
    program: krane.program,
    region,
    controlPlane: { url: running?.url ?? assert.fail("it is not served"), token },
    kubeconfigPath: account.kubeconfigPath,
    agentToken,
  };
  const startAgent = (env: Readonly<Record<string, string>> = { UNKEY_SCHEDULER_TOKEN: schedulerToken }) =>
    startAgentProcess(t, place, env);
  return { admin, startAgent };
}

function deployment(name: string, replicas: number) {
  return applyDeployment({ k8sName: name, deploymentId: `d_${name}`, replicas });
}

async function order(url: string, name: string, replicas: number): Promise<void> {
  const client = createClient(SchedulerService, createConnectTransport({ baseUrl: url, httpVersion: "1.1" }));
  const {
    $typeName: _,
    $unknown: __,
    command: ___,
    port: ____,
    shutdownSignal: _____,
    ...fields
  } = deployment(name, replicas);
  const headers = { authorization: `Bearer ${schedulerToken}` };
  await client.applyDeployment(create(ApplyDeploymentRequestSchema, fields), { headers });
}

/** What the tenant writes onto a ReplicaSet: everything that krane would, under its name, and an order. */
async function forge(name: string): Promise<void> {
  const message = deployment(name, 5);
  const parsed = parseApplyDeployment(message, { registries: [] });
  assert.ok(parsed.kind === "valid");
  const manifest = desiredReplicaSet(parsed.spec, { secrets: { audience: "krane" } });
  const annotations = { ...manifest.metadata?.annotations, ...forgedOrder(message, highestVersion) };
  const input = JSON.stringify({ ...manifest, metadata: { ...manifest.metadata, annotations } });
  const asKrane = ["--server-side", "--force-conflicts", "--field-manager=krane"];
  await cluster.kubectl([`--as=${tenant}`, "apply", ...asKrane, "-f", "-"], { input });
}

async function replicas(name: string): Promise<string> {
  const path = "jsonpath={.spec.replicas}";
  return cluster.kubectl(["-n", "acme", "get", "rs", name, "--ignore-not-found", "-o", path]);
}

async function recordedKeys(): Promise<readonly string[]> {
  const selector = "app.kubernetes.io/component=order";
  const path = "jsonpath={.items[*].data.key}";
  const text = await cluster.kubectl(["-n", "krane", "get", "configmaps", "-l", selector, "-o", path]);
  return text.split(" ").filter(Boolean);
}

test("a genuine order survives a restart and a manual delete, and ends with a Delete of the control plane", async (t) => {
  const { admin, startAgent } = await createRegion(t);
  const first = await startAgent();
  await order(first.url, "ordered", 2);
  assert.deepEqual(await recordedKeys(), ["acme/ordered"]);
  await order(first.url, "ordered", 3);
  await first.stop();
  await cluster.kubectl([`--as=${tenant}`, "-n", "acme", "delete", "rs", "ordered"]);
  const second = await startAgent();
  await eventually("it is back", async () => assert.equal(await replicas("ordered"), "3"));
  await admin.setDeployment(region, deployment("ordered", 1));
  await eventually("the control plane has it", async () => assert.equal(await replicas("ordered"), "1"));
  await eventually("its record is gone", async () => assert.deepEqual(await recordedKeys(), []));
  await order(second.url, "ordered", 4);
  await admin.deleteDeployment(region, "d_ordered");
  await eventually("it is gone", async () => assert.equal(await replicas("ordered"), ""));
  assert.deepEqual(await recordedKeys(), []);
  await second.stop();
});

for (const [what, env] of [
  ["on", { UNKEY_SCHEDULER_TOKEN: schedulerToken }],
  ["off", {}],
] as const)
  test(`with the scheduler ${what}, an order that a tenant wrote is neither believed nor restored`, async (t) => {
    const { admin, startAgent } = await createRegion(t);
    await admin.setDeployment(region, deployment("known", 1));
    const first = await startAgent(env);
    await eventually("it is applied", async () => assert.equal(await replicas("known"), "1"));
    await first.stop();
    await forge("known");
    await forge("unknown");
    const second = await startAgent(env);
    await eventually("the control plane wins", async () => assert.equal(await replicas("known"), "1"));
    await cluster.kubectl(["-n", "acme", "delete", "rs", "unknown"]);
    await admin.deleteDeployment(region, "d_known");
    await eventually("it is gone", async () => assert.equal(await replicas("known"), ""));
    assert.equal(await replicas("unknown"), "");
    await second.stop();
  });

test("a tenant can neither read nor write records", async () => {
  for (const verb of ["get", "list", "create", "update", "patch", "delete"])
    await assert.rejects(
      cluster.kubectl([`--as=${tenant}`, "-n", "krane", "auth", "can-i", "--quiet", verb, "configmaps"]),
      verb,
    );
});

test("every call of all this is in the list of calls", async () => {
  const calls = (await loadAuditedCalls(cluster.auditLogPath)).slice(callsBefore);
  const own = calls.filter(({ user, userAgent }) => user === account.user && userAgent.startsWith("krane/"));
  const records = own.filter(({ resource }) => resource === "configmaps");
  assert.deepEqual([...new Set(records.map(({ verb }) => verb))].sort(), [
    "create",
    "delete",
    "get",
    "list",
    "patch",
  ]);
  assert.deepEqual(
    own.filter((call) => call.statusCode === 403 || !isListed(call, ["agent", "scheduler"])),
    [],
  );
});
