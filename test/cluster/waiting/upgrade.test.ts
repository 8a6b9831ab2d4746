// An upgrade from the previous version on a real Kubernetes, back again, and forth once more: each agent is the program
// as it ships and has the rights of its own version's chart. What they really sent is read from the audit log.
import assert from "node:assert/strict";
import { after, before, type TestContext, test } from "node:test";
import { Code } from "@connectrpc/connect";
import type { ReplicaSet } from "kubernetes-types/apps/v1.js";
import type { Pod } from "kubernetes-types/core/v1.js";
import type { KubeObject } from "../../../src/kube/types.ts";
import { annotationKeys } from "../../../src/model/labels.ts";
import { agentClient, agentToken } from "../../integration/agent/agent-world.ts";
import { dev as region, serveControlPlane, token } from "../../integration/server/served-control-plane.ts";
import { startAgentProcess } from "../../support/agent-process.ts";
import { type AuditedCall, loadAuditedCalls } from "../../support/audit-log.ts";
import { clusterUnderTest } from "../../support/cluster-under-test.ts";
import { installRights, type ServiceAccountAccess } from "../../support/deployed-rights.ts";
import { applyDeployment } from "../../support/deployment-messages.ts";
import { eventually } from "../../support/eventually.ts";
import { buildKrane } from "../../support/krane-process.ts";
import { applyPolicy } from "../../support/policy-messages.ts";
import { previousVersionOrSkip } from "../../support/previous-version.ts";
import { applySentinel } from "../../support/sentinel-messages.ts";

const cluster = clusterUnderTest();
const previous = await previousVersionOrSkip(process.env);
const skip = previous.kind === "missing" && previous.what;
const registry = {
  UNKEY_REGISTRY_URL: "registry.example",
  UNKEY_REGISTRY_USERNAME: "puller",
  UNKEY_REGISTRY_PASSWORD: "not-a-real-password",
};
const deploymentIds = ["d_1", "d_2", "d_3"];
const sentinelIds = ["se_1", "se_2"];
const workloads = "replicasets,deployments.apps,services,poddisruptionbudgets,ciliumnetworkpolicies,secrets";

let krane: Awaited<ReturnType<typeof buildKrane>>;
let account: ServiceAccountAccess | undefined;

before(async () => {
  krane = await buildKrane();
  await cluster.empty();
});
after(async () => {
  await account?.remove();
  await cluster.empty();
  await krane.remove();
});

type Version = "previous" | "present";

/** What `helm upgrade` or `helm rollback` does: rights that a version does not have are gone. */
async function switchRights(version: Version): Promise<ServiceAccountAccess> {
  await account?.remove();
  const manifestsDir = previous.kind === "ready" ? previous.manifestsDir : assert.fail("it was skipped");
  const options = version === "previous" ? { manifestsDir } : {};
  account = await installRights(cluster, ["agent", "registry"], options);
  const { token: bearer } = account;
  // The API server may still know the other version's rights for a moment.
  await eventually(`the rights are those of the ${version} version`, async () => {
    const path = "/api/v1/namespaces/krane/secrets?dryRun=All";
    const metadata = { name: "krane-seal", labels: { "app.kubernetes.io/managed-by": "krane" } };
    const body = { apiVersion: "v1", kind: "Secret", type: "Opaque", metadata };
    const { status } = await cluster.request({ method: "POST", path, body, token: bearer });
    assert.ok((version === "previous" ? [422] : [201, 409]).includes(status), `${status}`);
  });
  return account;
}

async function createRegion(t: TestContext) {
  const { admin, faults, running } = await serveControlPlane(t, "h2c");
  for (const id of deploymentIds)
    await admin.setDeployment(region, applyDeployment({ ...named("web", id), replicas: 2 }));
  for (const id of sentinelIds)
    await admin.setSentinel(region, applySentinel({ k8sName: id.replace("se_", "gate-"), sentinelId: id }));
  await admin.setPolicy(region, applyPolicy());
  const startAgent = async (version: Version) => {
    const { kubeconfigPath } = account ?? assert.fail("no rights");
    const program = version === "present" || previous.kind === "missing" ? krane.program : previous.program;
    const controlPlane = { url: running?.url ?? assert.fail("it is not served"), token };
    const place = { program, region, controlPlane, kubeconfigPath, agentToken };
    const agent = await startAgentProcess(t, place, registry);
    return { ...agent, client: agentClient(t, agent.url) };
  };
  return { admin, faults, startAgent };
}

type Region = Awaited<ReturnType<typeof createRegion>>;
type Agent = Awaited<ReturnType<Region["startAgent"]>>;

function named(name: string, deploymentId: string) {
  return { k8sName: deploymentId.replace("d_", `${name}-`), deploymentId };
}

async function loadItems<T>(what: string): Promise<readonly T[]> {
  const of = async (namespace: string): Promise<readonly T[]> =>
    JSON.parse(await cluster.kubectl(["-n", namespace, "get", what, "-o", "json"])).items;
  return [...(await of("acme")), ...(await of("sentinel"))];
}

/** Every object that krane applied: not the ReplicaSets of sentinels, which Kubernetes made. */
async function loadApplied(): Promise<readonly KubeObject[]> {
  const items = await loadItems<KubeObject>(workloads);
  return items.filter(({ metadata, kind }) => kind !== "ReplicaSet" || metadata?.namespace === "acme");
}

/** Resolves when the agent has applied everything and so many pods run, with their uids. */
async function untilApplied({ client }: Agent, pods: number): Promise<readonly string[]> {
  return eventually(
    `everything is applied, and ${pods} pods run`,
    async () => {
      const { objects } = await client.listObjects({});
      // The policy of an environment has no version.
      const sent = objects.filter(({ desiredVersion }) => desiredVersion !== 0n);
      assert.equal(sent.length, deploymentIds.length + sentinelIds.length + 1);
      const behind = sent.filter(({ appliedVersion, desiredVersion }) => appliedVersion !== desiredVersion);
      assert.deepEqual(behind, []);
      assert.deepEqual((await client.listObjects({ onlyTroubled: true })).objects, []);
      const found = (await loadItems<Pod>("pods")).filter(({ status }) => status?.phase === "Running");
      assert.equal(found.length, pods);
      return found.map(({ metadata }) => metadata?.uid ?? "").sort();
    },
    { deadlineMs: 60_000 },
  );
}

/**
 * An agent that starts asks for each object that it finds. Policies it may find only after that, because it does not
 * wait for Cilium; a replay brings them.
 */
async function untilResynced({ client }: Agent): Promise<void> {
  await eventually("the first resync is over", async () => {
    const { status } = await client.getStatus({});
    const asked = new Map(status?.controllers.map(({ name, resync }) => [name, resync?.asked]));
    assert.equal(asked.get("deployments"), deploymentIds.length);
    assert.equal(asked.get("sentinels"), sentinelIds.length);
  });
}

async function replayAll({ client }: Agent, faults: Region["faults"]): Promise<void> {
  // The previous version has no routes, and nothing here has one.
  const controllersOf = async () =>
    ((await client.getStatus({})).status?.controllers ?? []).filter(({ name }) => name !== "routes");
  const before = new Map((await controllersOf()).map(({ name, stream }) => [name, stream?.reconnects ?? 0]));
  for (const rpc of ["watchDeployments", "watchSentinels", "watchCiliumNetworkPolicies"] as const)
    faults.failNext(rpc, Code.OutOfRange);
  faults.cutStreams();
  await eventually("everything was streamed again", async () => {
    for (const { name, stream } of await controllersOf()) {
      // One for the cut, and one for the cursor that the control plane does not know.
      assert.ok((stream?.reconnects ?? 0) >= (before.get(name) ?? 0) + 2, `${name}: no replay yet`);
      assert.notEqual(stream?.cursor, 0n, name);
    }
  });
}

async function loadUnsealed(): Promise<readonly string[]> {
  const bare = (await loadApplied()).filter(({ metadata }) => !metadata?.annotations?.[annotationKeys.seal]);
  return bare.map(nameOf);
}

function nameOf({ kind, metadata }: KubeObject): string {
  return `${kind} ${metadata?.namespace}/${metadata?.name}`;
}

async function untilSealed(): Promise<void> {
  await eventually("every object is sealed", async () => assert.deepEqual(await loadUnsealed(), []));
}

/** A sentinel is rolled if its apps/v1 Deployment gets another ReplicaSet. */
async function loadSentinelTemplates(): Promise<readonly string[]> {
  const sets = (await loadItems<ReplicaSet>("replicasets")).filter(
    ({ metadata }) => metadata?.namespace === "sentinel",
  );
  return sets.map(({ metadata }) => metadata?.name ?? "").sort();
}

/** The uid of every object that krane applied, by its name. */
async function loadUids(): Promise<ReadonlyMap<string, string | undefined>> {
  return new Map((await loadApplied()).map((object) => [nameOf(object), object.metadata?.uid]));
}

/** The calls that agents made meanwhile. */
async function callsDuring(act: () => Promise<void>): Promise<readonly AuditedCall[]> {
  const before = (await loadAuditedCalls(cluster.auditLogPath)).length;
  await act();
  // What was answered before this call is in the log before it.
  const path = `/api/v1/namespaces?limit=1&labelSelector=asked-at=${process.hrtime.bigint()}`;
  await cluster.request({ path });
  const calls = await eventually("the audit log is up to date", async () => {
    const loaded = await loadAuditedCalls(cluster.auditLogPath);
    assert.ok(
      loaded.some(({ requestUri }) => requestUri === path),
      "not yet",
    );
    return loaded;
  });
  return calls
    .slice(before)
    .filter(({ user, userAgent }) => user === account?.user && userAgent.startsWith("krane/"));
}

/** Without Events and renewals of the lease. */
function writesOf(calls: readonly AuditedCall[]): readonly string[] {
  return calls
    .filter(({ verb }) => !["get", "list", "watch"].includes(verb))
    .filter(({ resource }) => resource !== "events" && resource !== "leases")
    .map(({ verb, resource, namespace, name }) => `${verb} ${resource} ${namespace}/${name}`);
}

/**
 * Nothing was deleted, and no call was refused. An agent may find that something does not exist, or exists already; and
 * the roles of an older version grant no Leases, without which it runs alone.
 */
function assertHarmless(calls: readonly AuditedCall[]): void {
  assert.ok(calls.length > 0, "agents called");
  const refused = calls.filter(
    ({ statusCode, resource }) =>
      statusCode >= 400 && ![404, 409].includes(statusCode) && !(statusCode === 403 && resource === "leases"),
  );
  assert.deepEqual(refused, []);
  assert.deepEqual(
    calls.filter(({ verb }) => verb.startsWith("delete")),
    [],
  );
}

/** Each of so many objects was written once. */
function assertWrittenOnce(calls: readonly AuditedCall[], objects: number): void {
  const writes = writesOf(calls).filter((write) => write !== "create secrets krane/krane-seal");
  // Deployments of one namespace share its pull secret, and several may send it at the same time, with equal content.
  const counted = writes.filter(
    (write, index) => !/ secrets /.test(write) || writes.indexOf(write) === index,
  );
  assert.equal(counted.length, objects, writes.join(", "));
  assert.equal(new Set(counted).size, objects, writes.join(", "));
}

test("an upgrade seals every object and replaces no pod, and so does one after a rollback", {
  skip,
  timeout: 400_000,
}, async (t) => {
  const { admin, faults, startAgent } = await createRegion(t);
  await switchRights("previous");
  const first = await startAgent("previous");
  const pods = await untilApplied(first, 8);
  await first.stop();
  const uids = await loadUids();
  const templates = await loadSentinelTemplates();
  assert.equal(templates.length, sentinelIds.length);
  assert.equal((await loadUnsealed()).length, uids.size);
  const assertKept = async () => {
    assert.deepEqual(await loadUids(), uids);
    assert.deepEqual(await loadSentinelTemplates(), templates, "no sentinel was rolled");
  };

  await switchRights("present");
  const upgrade = await callsDuring(async () => {
    const agent = await startAgent("present");
    await untilSealed();
    assert.deepEqual(await untilApplied(agent, 8), pods);
    await agent.stop();
  });
  assertHarmless(upgrade);
  assertWrittenOnce(upgrade, uids.size);
  await assertKept();

  await switchRights("previous");
  let scaled: readonly string[] = [];
  const rollback = await callsDuring(async () => {
    const agent = await startAgent("previous");
    assert.deepEqual(await untilApplied(agent, 8), pods);
    await admin.scale(region, "d_1", 3);
    await admin.scaleSentinel(region, "se_1", 2);
    scaled = await untilApplied(agent, 10);
    await agent.stop();
  });
  assertHarmless(rollback);
  await assertKept();
  const replaced = pods.filter((uid) => !scaled.includes(uid));
  assert.deepEqual(replaced, []);
  // To it the seal is drift, which it removes. It compares Secrets in another way.
  const stripped = [...uids.keys()].filter((name) => !name.startsWith("Secret "));
  assert.deepEqual(await loadUnsealed(), stripped);

  await switchRights("present");
  const again = await callsDuring(async () => {
    const agent = await startAgent("present");
    await untilSealed();
    assert.deepEqual(await untilApplied(agent, 10), scaled);
    await agent.stop();
  });
  assertHarmless(again);
  assertWrittenOnce(again, stripped.length);

  const atRest = await callsDuring(async () => {
    const agent = await startAgent("present");
    await untilResynced(agent);
    await replayAll(agent, faults);
    assert.deepEqual(await untilApplied(agent, 10), scaled);
    await agent.stop();
  });
  assertHarmless(atRest);
  assert.deepEqual(writesOf(atRest), []);
  await assertKept();
});
