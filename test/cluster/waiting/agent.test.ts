// The agent as it ships, a process that is the chart's service account and has the chart's roles and no others, between
// a control plane and a real Kubernetes. What it really sent is read from the API server's audit log.
import assert from "node:assert/strict";
import { after, before, beforeEach, type TestContext, test } from "node:test";
import { Code } from "@connectrpc/connect";
import type { ReplicaSet } from "kubernetes-types/apps/v1.js";
import type { Event, Pod } from "kubernetes-types/core/v1.js";
import { accessReviews, clusterCalls } from "../../../src/agent/cluster-calls.ts";
import { ReportDeploymentStatusRequest_Update_Instance_Status as InstanceStatus } from "../../../src/gen/ctrl/v1/deployment_pb.ts";
import { Health } from "../../../src/gen/ctrl/v1/sentinel_pb.ts";
import { ObjectStatus_Outcome } from "../../../src/gen/krane/v1/agent_pb.ts";
import type { KubeObject } from "../../../src/kube/types.ts";
import { agentClient, agentToken } from "../../integration/agent/agent-world.ts";
import { dev as region, serveControlPlane, token } from "../../integration/server/served-control-plane.ts";
import { startAgentProcess } from "../../support/agent-process.ts";
import { type AuditedCall, loadAuditedCalls } from "../../support/audit-log.ts";
import { clusterUnderTest } from "../../support/cluster-under-test.ts";
import { installRights, type ServiceAccountAccess } from "../../support/deployed-rights.ts";
import { applyDeployment } from "../../support/deployment-messages.ts";
import { eventually } from "../../support/eventually.ts";
import { fetchHttp1 } from "../../support/http-clients.ts";
import { buildKrane } from "../../support/krane-process.ts";
import { isListed } from "../../support/listed-calls.ts";
import { replicaSetOfOlderAgent } from "../../support/older-agent.ts";
import { applyPolicy } from "../../support/policy-messages.ts";
import { applySentinel } from "../../support/sentinel-messages.ts";

const cluster = clusterUnderTest();
const registry = {
  UNKEY_REGISTRY_URL: "registry.example",
  UNKEY_REGISTRY_USERNAME: "puller",
  UNKEY_REGISTRY_PASSWORD: "not-a-real-password",
};
let krane: Awaited<ReturnType<typeof buildKrane>>;
let callsBefore = 0;
let account: ServiceAccountAccess;

before(async () => {
  krane = await buildKrane();
  callsBefore = (await loadAuditedCalls(cluster.auditLogPath)).length;
});
beforeEach(async () => {
  await cluster.empty();
  account = await installRights(cluster, ["agent", "registry"]);
});
after(async () => {
  await account.remove();
  await krane.remove();
});

/** A control plane of its own, and agents that come and go. */
async function createRegion(t: TestContext) {
  const { admin, faults, running } = await serveControlPlane(t, "h2c");
  const place = {
    program: krane.program,
    region,
    controlPlane: { url: running?.url ?? assert.fail("it is not served"), token },
    kubeconfigPath: account.kubeconfigPath,
    agentToken,
  };
  const startAgent = async (env: Readonly<Record<string, string>> = {}) => {
    const agent = await startAgentProcess(t, place, { ...registry, ...env });
    return { ...agent, client: agentClient(t, agent.url) };
  };
  return { admin, faults, startAgent };
}

type Region = Awaited<ReturnType<typeof createRegion>>;

function deployment(index: number, more: Parameters<typeof applyDeployment>[0] = {}) {
  const environmentId = index === 3 ? "env_b" : "env_a";
  const names = { k8sName: `web-${index}`, deploymentId: `d_${index}`, environmentId };
  return applyDeployment({ ...names, replicas: 2, port: 8080, ...more });
}

async function kubectlItems<T>(what: string, namespace = "acme"): Promise<readonly T[]> {
  return JSON.parse(await cluster.kubectl(["-n", namespace, "get", what, "-o", "json"])).items;
}

/** Resolves when the control plane knows of as many running instances of each deployment, and of no others. */
async function untilRunning({ admin }: Region, wanted: Readonly<Record<string, number>>): Promise<void> {
  const running = new Map(Object.entries(wanted));
  await eventually(
    `running: ${JSON.stringify(wanted)}`,
    async () => {
      for (const [id, count] of running) {
        const statuses = (await admin.instances(region, id)).map(({ status }) => status);
        assert.deepEqual(statuses, Array(count).fill(InstanceStatus.RUNNING), id);
      }
    },
    { deadlineMs: 60_000 },
  );
}

/** What the control plane knows is what kubectl shows: the same pods, at the same addresses, running. */
async function assertReportedAsShown({ admin }: Region): Promise<void> {
  const reported: unknown[] = [];
  for (const { id } of await admin.deployments(region))
    for (const { k8sName, address, status } of await admin.instances(region, id))
      reported.push([id, k8sName, address, status === InstanceStatus.RUNNING ? "Running" : status]);
  const shown = (await kubectlItems<Pod>("pods")).map(({ metadata, status }) => [
    metadata?.labels?.["unkey.com/deployment.id"],
    metadata?.name,
    `${status?.podIP?.replaceAll(".", "-")}.acme.pod.cluster.local:8080`,
    status?.phase,
  ]);
  assert.deepEqual(reported.sort(), shown.sort());
}

/** The calls of this file's agents so far. */
async function callsOfAgents(): Promise<readonly AuditedCall[]> {
  // An entry may come a moment after its answer: what was answered before this call is in the log before it.
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
  return calls.slice(callsBefore).filter(({ user, userAgent }) => {
    return user === account.user && userAgent.startsWith("krane/");
  });
}

/** Without renewals of the lease. */
async function countWrites({ ofEvents = true } = {}): Promise<number> {
  const reads = ["get", "list", "watch"];
  const writes = (await callsOfAgents()).filter(
    ({ verb, resource }) => !reads.includes(verb) && resource !== "leases",
  );
  return writes.filter(({ resource }) => ofEvents || resource !== "events").length;
}

test("deployments become ready, are scaled, get neighbours, come back and go, and the control plane knows what kubectl shows", async (t) => {
  const world = await createRegion(t);
  const { admin, startAgent } = world;
  for (const index of [1, 2, 3]) await admin.setDeployment(region, deployment(index));
  const agent = await startAgent();
  await untilRunning(world, { d_1: 2, d_2: 2, d_3: 2 });
  await assertReportedAsShown(world);

  await admin.scale(region, "d_1", 3);
  await admin.scale(region, "d_2", 1);
  await admin.setDeployment(region, deployment(4));
  await untilRunning(world, { d_1: 3, d_2: 1, d_3: 2, d_4: 2 });
  await eventually("pods that were taken away are gone", () => assertReportedAsShown(world));

  await cluster.kubectl(["-n", "acme", "delete", "replicaset", "web-4"]);
  await untilRunning(world, { d_4: 2 });
  await eventually("what was deleted by hand is back", () => assertReportedAsShown(world));

  await admin.deleteDeployment(region, "d_3");
  await eventually("it is gone and reported, and so is the policy of its environment", async () => {
    assert.equal((await admin.deploymentReport(region, "d_3"))?.exists, false);
    const names = (await kubectlItems<ReplicaSet>("replicasets")).map(({ metadata }) => metadata?.name);
    assert.deepEqual(names, ["web-1", "web-2", "web-4"]);
    assert.equal((await kubectlItems("ciliumnetworkpolicies")).length, 1);
    await assertReportedAsShown(world);
  });
  await agent.stop();
});

test("the same state again, a replay, a resync and a restart do not write (K11)", async (t) => {
  const world = await createRegion(t);
  const { admin, faults, startAgent } = world;
  for (const index of [1, 2, 3]) await admin.setDeployment(region, deployment(index));
  const first = await startAgent();
  await untilRunning(world, { d_1: 2, d_2: 2, d_3: 2 });
  const writes = await countWrites();

  // A cursor that the control plane does not know: the agent begins again at 0.
  faults.failNext("watchDeployments", Code.OutOfRange);
  faults.cutStreams();
  await eventually("everything was streamed again", async () => {
    const controller = await deploymentsOf(first);
    assert.ok((controller?.stream?.reconnects ?? 0) >= 2, "not yet");
    assert.equal(controller?.stream?.cursor, 3n);
  });
  await first.stop();

  // There and back while nobody looks: new versions of what is in the cluster already.
  const versions = new Map<string, bigint>();
  for (const index of [1, 2, 3]) {
    await admin.setDeployment(region, deployment(index, { replicas: 7 }));
    versions.set(`d_${index}`, await admin.setDeployment(region, deployment(index)));
  }
  const second = await startAgent();
  await eventually("it has asked for everything, and has been told everything", async () => {
    const controller = await deploymentsOf(second);
    assert.deepEqual([controller?.resync?.asked, controller?.resync?.corrected], [3, 0]);
    assert.equal(controller?.stream?.cursor, 9n);
    await assertApplied(second, versions);
  });
  assert.equal(await countWrites(), writes);

  await admin.scale(region, "d_1", 3);
  await untilRunning(world, { d_1: 3 });
  assert.equal(await countWrites(), writes + 1, "and what is new is written once");
  await second.stop();
});

type Agent = Awaited<ReturnType<Region["startAgent"]>>;

async function deploymentsOf({ client }: Agent) {
  const { status } = await client.getStatus({});
  return status?.controllers.find(({ name }) => name === "deployments");
}

async function assertApplied({ client }: Agent, versions: ReadonlyMap<string, bigint>): Promise<void> {
  const { objects } = await client.listObjects({});
  const applied = objects
    .filter(({ id }) => versions.has(id))
    .map(({ id, appliedVersion }) => [id, appliedVersion]);
  assert.deepEqual(applied, [...versions]);
}

test("a ReplicaSet that an older agent left is taken over, and its pods live on", async (t) => {
  const world = await createRegion(t);
  await cluster.kubectl(["create", "namespace", "acme"]);
  const apply = ["apply", "--server-side", "--field-manager=krane", "-f", "-"];
  await cluster.kubectl(apply, { input: JSON.stringify(replicaSetOfOlderAgent("acme")) });
  const facts = async () => {
    const items = await kubectlItems<Pod>("pods");
    assert.equal(items.filter(({ status }) => status?.phase === "Running").length, 2);
    return items.map(({ metadata, status }) => [metadata?.uid, status?.podIP]).sort();
  };
  const before = await eventually("its pods run", facts);

  await world.admin.setDeployment(
    region,
    applyDeployment({ deploymentId: "d_1a2B3c4D", replicas: 2, port: 8080 }),
  );
  const agent = await world.startAgent();
  await untilRunning(world, { d_1a2B3c4D: 2 });
  await eventually("it is krane's now, and the ReplicaSet controller has seen it", async () => {
    const [set] = await kubectlItems<ReplicaSet>("replicasets");
    assert.ok(set?.metadata?.annotations?.["krane.unkey.com/manifest-hash"], "not yet");
    assert.ok(set.metadata.annotations["krane.unkey.com/seal"], "it is not sealed");
    assert.equal(set.status?.observedGeneration, set.metadata.generation);
  });
  assert.deepEqual(await facts(), before);
  await assertReportedAsShown(world);
  await agent.stop();
});

test("a deployment that is not valid shows which field is wrong, and the others do not wait for it", async (t) => {
  const world = await createRegion(t);
  const { admin, startAgent } = world;
  await admin.setDeployment(region, deployment(1, { image: "not an image" }));
  for (const index of [2, 3]) await admin.setDeployment(region, deployment(index));
  const agent = await startAgent();
  await untilRunning(world, { d_2: 2, d_3: 2 });

  await eventually("it is parked with its reason, and holds no version back", async () => {
    const { objects } = await agent.client.listObjects({ onlyTroubled: true });
    assert.deepEqual(
      objects.map(({ id, outcome, fieldPath }) => [id, outcome, fieldPath]),
      [["d_1", ObjectStatus_Outcome.PARKED, "image"]],
    );
    assert.notEqual(objects[0]?.reason, "");
    const controller = await deploymentsOf(agent);
    assert.equal(controller?.stream?.cursor, 3n);
  });
  const { body } = await fetchHttp1(agent.metricsUrl);
  assert.match(body, /^unkey_krane_troubled_objects\{controller="deployments",outcome="parked"\} 1$/m);

  await admin.setDeployment(region, deployment(1));
  await untilRunning(world, { d_1: 2, d_2: 2, d_3: 2 });
  await agent.stop();
});

test("a deletion that is held back is told in an Event on the object", async (t) => {
  const world = await createRegion(t);
  await world.admin.setDeployment(region, deployment(1));
  const first = await world.startAgent();
  await untilRunning(world, { d_1: 2 });
  await first.stop();
  await world.admin.forgetDeployment(region, "d_1");
  const second = await world.startAgent({ UNKEY_DELETION_CONFIRMATIONS: "1" });
  await eventually("it is told", async () => {
    const told = (await kubectlItems<Event>("events")).find(({ reason }) => reason === "DeletionBlocked");
    assert.equal(told?.involvedObject.name, "web-1");
  });
  assert.equal((await kubectlItems("replicasets")).length, 1);
  await second.stop();
});

test("a sentinel with all its parts and a policy come, are repaired, and go without a trace", async (t) => {
  const { admin, startAgent } = await createRegion(t);
  await admin.setSentinel(region, applySentinel({ sentinelId: "se_1", replicas: 2 }));
  await admin.setPolicy(region, applyPolicy());
  const agent = await startAgent();
  const parts = ["deployments", "services", "poddisruptionbudgets", "ciliumnetworkpolicies"];
  const namesOf = async (namespace: string) => {
    const names: (string | undefined)[] = [];
    for (const what of parts)
      for (const { metadata } of await kubectlItems<KubeObject>(what, namespace)) names.push(metadata?.name);
    return names;
  };
  const whole = ["gate", "gate", "gate-gossip-lan", "gate", "gate-gossip-lan"];
  await eventually("all of it is there", async () => {
    assert.deepEqual(await namesOf("sentinel"), whole);
    assert.deepEqual(await namesOf("acme"), ["sentinel-ingress-to-web"]);
  });
  await eventually(
    "it is reported healthy",
    async () => assert.equal((await admin.sentinelStatus(region, "se_1"))?.health, Health.HEALTHY),
    { deadlineMs: 90_000 },
  );

  const writes = await countWrites({ ofEvents: false });
  await cluster.kubectl(["-n", "acme", "delete", "ciliumnetworkpolicy", "sentinel-ingress-to-web"]);
  await cluster.kubectl(["-n", "sentinel", "delete", "service", "gate"]);
  await eventually("both are back", async () => {
    assert.deepEqual(await namesOf("sentinel"), whole);
    assert.deepEqual(await namesOf("acme"), ["sentinel-ingress-to-web"]);
  });
  assert.equal(await countWrites({ ofEvents: false }), writes + 2, "and nothing else was written");

  await admin.deleteSentinel(region, "se_1");
  await admin.deletePolicy(region, applyPolicy().ciliumNetworkPolicyId);
  await eventually("nothing is left", async () => {
    assert.deepEqual(await namesOf("sentinel"), []);
    assert.deepEqual(await namesOf("acme"), []);
  });
  const { objects } = await agent.client.listObjects({ onlyTroubled: true });
  assert.deepEqual(objects, []);
  await agent.stop();
});

test("a pod that somebody opens to its node is evicted", async (t) => {
  const world = await createRegion(t);
  await world.admin.setDeployment(region, deployment(1));
  const agent = await world.startAgent();
  await untilRunning(world, { d_1: 2 });
  const [weak] = await kubectlItems<KubeObject>("pods");
  const { name = "", uid } = weak?.metadata ?? {};
  await cluster.kubectl(["-n", "acme", "annotate", "pod", name, "dev.gvisor.flag.network=host"]);
  await eventually("it is gone", async () => {
    const uids = (await kubectlItems<KubeObject>("pods")).map(({ metadata }) => metadata?.uid);
    assert.equal(uids.includes(uid), false);
  });
  await untilRunning(world, { d_1: 2 });
  await agent.stop();
});

test("every call of all this is in the list of calls, and every line of the list was needed", async () => {
  const calls = await callsOfAgents();
  // An apply that makes a new object is a patch in the log, and has to be allowed as a create as well.
  const created = calls.filter(({ verb, statusCode }) => verb === "patch" && statusCode === 201);
  const used = [...calls, ...created.map((call) => ({ ...call, verb: "create" }))];
  assert.deepEqual(
    used.filter((call) => call.statusCode === 403 || !isListed(call, ["agent", "registry"])),
    [],
  );
  const needed = accessReviews(
    clusterCalls.filter(({ part }) => part === "agent" || part === "registry"),
    "krane",
  )
    .map(({ attributes: { verb, group, resource } }) => `${verb} ${resource}.${group}`)
    // Lists are for API servers that cannot begin a watch with the present state; this one can.
    .filter((right) => !right.startsWith("list "));
  assert.deepEqual(
    [...new Set(used.map(({ verb, group, resource }) => `${verb} ${resource}.${group}`))].sort(),
    [...new Set(needed)].sort(),
  );
});
