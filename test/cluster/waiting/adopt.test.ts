// A lost key, a renamed region and two installs on a real Kubernetes: the agents are processes with the chart's service
// account, its roles and its admission policy. Nothing is deleted, everything is told, and krane adopt makes it one
// agent's again, with its pods.
import assert from "node:assert/strict";
import { after, before, type TestContext, test } from "node:test";
import { main } from "../../../src/cli/main.ts";
import type { KubeObject } from "../../../src/kube/types.ts";
import { annotationKeys } from "../../../src/model/labels.ts";
import { agentToken } from "../../integration/agent/agent-world.ts";
import { type AdminServer, startAdminServer } from "../../support/admin-server.ts";
import { startAgentProcess } from "../../support/agent-process.ts";
import { loadAuditedCalls } from "../../support/audit-log.ts";
import { clusterUnderTest } from "../../support/cluster-under-test.ts";
import { installRights, type ServiceAccountAccess } from "../../support/deployed-rights.ts";
import { applyDeployment } from "../../support/deployment-messages.ts";
import { eventually } from "../../support/eventually.ts";
import { FakeIo } from "../../support/fake-io.ts";
import { buildKrane } from "../../support/krane-process.ts";
import { applySentinel } from "../../support/sentinel-messages.ts";

const cluster = clusterUnderTest();
const [region, renamed] = ["local.dev", "renamed.dev"];
// An agent reports every 30 s, and takes adoptions from the answer.
const patience = { deadlineMs: 120_000 };
const kindsWritten = "replicasets,deployments,services,poddisruptionbudgets,ciliumnetworkpolicies";
let krane: Awaited<ReturnType<typeof buildKrane>>;
let account: ServiceAccountAccess;

before(async () => {
  krane = await buildKrane();
  await cluster.empty();
  account = await installRights(cluster, ["agent"]);
});
after(async () => {
  await account.remove();
  await cluster.empty();
  await krane.remove();
});

async function createWorld(t: TestContext) {
  await cluster.kubectl(["delete", "namespace", "acme", "--ignore-not-found"]);
  // The namespace itself holds the chart's roles.
  await cluster.kubectl(["-n", "sentinel", "delete", kindsWritten, "--all", "--ignore-not-found"]);
  const server = await startAdminServer({ regions: [region, renamed] });
  t.after(() => server.stop());
  const controlPlane = { url: server.url, token: server.tokens.agent };
  const place = { program: krane.program, controlPlane, kubeconfigPath: account.kubeconfigPath, agentToken };
  // Without the guards that would hold back a deletion for minutes: an agent that considers these objects its own and
  // unwanted deletes them here.
  const hasty = { UNKEY_DELETION_CONFIRMATIONS: "1", UNKEY_DELETION_MINIMUM_AGE: "1s" };
  const startAgent = (ofRegion = region) => startAgentProcess(t, { ...place, region: ofRegion }, hasty);
  return { server, startAgent };
}

interface ShownStranger {
  readonly kind: string;
  readonly name: string;
  readonly adoptable: boolean;
  readonly reason: string;
  readonly obstacle: string;
}

async function command(server: AdminServer, argv: readonly string[], ofRegion = region): Promise<string> {
  const io = new FakeIo();
  const env = { KRANE_SERVER: server.url, KRANE_TOKEN: server.tokens.readWrite, KRANE_REGION: ofRegion };
  const code = await main(argv, env, io);
  assert.equal(code, 0, io.stderr.text);
  return io.stdout.text;
}

async function strangers(server: AdminServer, ofRegion = region): Promise<readonly ShownStranger[]> {
  return JSON.parse(await command(server, ["adopt", "--dry-run", "-o", "json"], ofRegion)).strangers;
}

/** All that krane wrote in a namespace, and the pods. */
async function objectsIn(namespace: string, resources = kindsWritten): Promise<readonly KubeObject[]> {
  const selector = resources === "pods" ? [] : ["-l", "app.kubernetes.io/managed-by=krane"];
  const text = await cluster.kubectl(["-n", namespace, "get", resources, ...selector, "-o", "json"]);
  const { items } = JSON.parse(text) as { readonly items: readonly KubeObject[] };
  if (resources === "pods") return items;
  // An apps/v1 Deployment passes its labels and annotations on to its ReplicaSets.
  return items.filter(
    ({ kind, metadata }) => kind !== "ReplicaSet" || metadata?.ownerReferences === undefined,
  );
}

async function uidsIn(...namespaces: readonly string[]): Promise<readonly (string | undefined)[]> {
  const lists = namespaces.flatMap((namespace) => [objectsIn(namespace), objectsIn(namespace, "pods")]);
  return (await Promise.all(lists)).flat().map(({ metadata }) => metadata?.uid);
}

function sealOf({ metadata }: KubeObject): string {
  return metadata?.annotations?.[annotationKeys.seal] ?? "";
}

/** What agents have changed, apart from telling it. */
async function changes(): Promise<number> {
  const calls = await loadAuditedCalls(cluster.auditLogPath);
  const isChange = ({ verb }: { readonly verb: string }) => !["get", "list", "watch"].includes(verb);
  const isAside = (resource: string) => ["events", "namespaces", "secrets", "leases"].includes(resource);
  return calls.filter(
    (call) => call.userAgent.startsWith("krane/") && isChange(call) && !isAside(call.resource),
  ).length;
}

async function assertReady(namespace: string, name: string, replicas: number): Promise<void> {
  const path = "jsonpath={.status.readyReplicas}";
  const ready = await cluster.kubectl(["-n", namespace, "get", "rs", name, "--ignore-not-found", "-o", path]);
  assert.equal(ready, `${replicas}`);
}

test("after a lost key nothing is touched, everything is told, and krane adopt takes it over with its pods", async (t) => {
  const { server, startAgent } = await createWorld(t);
  await server.admin.setDeployment(
    region,
    applyDeployment({ k8sName: "web", deploymentId: "d_web", replicas: 2 }),
  );
  await server.admin.setSentinel(region, applySentinel({ k8sName: "gate", sentinelId: "se_gate" }));
  const first = await startAgent();
  await eventually("the deployment runs", () => assertReady("acme", "web", 2), patience);
  await eventually("the sentinel is complete", async () =>
    assert.equal((await objectsIn("sentinel")).length, 5),
  );
  await first.stop();
  const before = await uidsIn("acme", "sentinel");
  await cluster.kubectl(["-n", "krane", "delete", "secret", "krane-seal"]);
  const changed = await changes();

  const second = await startAgent();
  const shown = await eventually(
    "all are told",
    async () => {
      const listed = await strangers(server);
      assert.equal(listed.filter(({ adoptable }) => adoptable).length, 7);
      return listed;
    },
    patience,
  );
  for (const { reason } of shown) assert.match(reason, /^it is sealed with the unknown key "[0-9a-f]{8}"$/);
  assert.match(await command(server, ["status"]), /^ {2}7 objects of another krane: krane adopt --dry-run/m);
  assert.deepEqual(await uidsIn("acme", "sentinel"), before);
  assert.equal(await changes(), changed, "nothing was written");

  assert.match(await command(server, ["adopt", "--yes"]), /^7 objects will be adopted$/m);
  await eventually("all are adopted", async () => assert.deepEqual(await strangers(server), []), patience);
  assert.deepEqual(await uidsIn("acme", "sentinel"), before, "the same objects, and the same pods");
  for (const object of [...(await objectsIn("acme")), ...(await objectsIn("sentinel"))])
    assert.match(sealOf(object), new RegExp(`&adopted=${object.metadata?.uid}&`));
  const told = await cluster.kubectl([
    ...["get", "events", "-A", "--field-selector", "reason=Adopted"],
    ...["-o", "jsonpath={.items[*].involvedObject.kind}"],
  ]);
  assert.equal(told.split(" ").length, 7);
  assert.equal(await changes(), changed + 7, "one write each");
  await second.stop();

  const third = await startAgent();
  await server.admin.setDeployment(
    region,
    applyDeployment({ k8sName: "new", deploymentId: "d_new", replicas: 1 }),
  );
  await eventually("it is at work", () => assertReady("acme", "new", 1), patience);
  assert.equal(await changes(), changed + 8, "only the new one was written");
  await third.stop();
});

test("agents of two regions leave each other's objects alone, and after a rename krane adopt takes over what is wanted", async (t) => {
  const { server, startAgent } = await createWorld(t);
  const web = applyDeployment({ k8sName: "moved", deploymentId: "d_moved", replicas: 1 });
  await server.admin.setDeployment(region, web);
  await server.admin.setDeployment(
    region,
    applyDeployment({ k8sName: "stays", deploymentId: "d_stays", replicas: 1 }),
  );
  const old = await startAgent();
  await eventually("the first runs", () => assertReady("acme", "moved", 1), patience);
  await eventually("the second runs", () => assertReady("acme", "stays", 1), patience);
  const names = async () => (await objectsIn("acme")).map(({ metadata }) => metadata?.name).sort();
  const before = await uidsIn("acme");
  const left = await names();

  await server.admin.setDeployment(renamed, web);
  const second = await startAgent(renamed);
  const shown = await eventually(
    "all are told",
    async () => {
      const listed = await strangers(server, renamed);
      assert.ok(
        listed.some(({ name, adoptable }) => name === "moved" && adoptable),
        "not yet",
      );
      return listed;
    },
    patience,
  );
  const byName = new Map(shown.map((each) => [each.name, each]));
  assert.deepEqual(byName.get("moved")?.reason, `it belongs to the region "${region}"`);
  assert.deepEqual(
    [byName.get("moved")?.adoptable, byName.get("stays")?.adoptable, byName.get("stays")?.obstacle],
    [true, false, "not in desired state"],
  );
  const changed = await changes();
  // Each has resynced with the control plane while both were running.
  const resyncedSince = Date.now();
  for (const each of [region, renamed])
    await eventually(
      `${each} has resynced`,
      async () => {
        const { agents } = JSON.parse(await command(server, ["status", "--region", each, "-o", "json"]));
        const [controller] = agents[0].state.controllers.filter(
          (one: { name: string }) => one.name === "deployments",
        );
        assert.ok(Number(controller.resync.lastStartedMs) > resyncedSince, "not yet");
      },
      { deadlineMs: 180_000 },
    );
  assert.deepEqual(await uidsIn("acme"), before);
  assert.deepEqual(await names(), left);
  assert.equal(await changes(), changed, "neither writes");

  await old.stop();
  await command(server, ["adopt", "--yes"], renamed);
  await eventually(
    "what is wanted is adopted",
    async () =>
      assert.ok(
        (await strangers(server, renamed)).every(({ adoptable }) => !adoptable),
        "not yet",
      ),
    patience,
  );
  assert.deepEqual(await uidsIn("acme"), before);
  const moved = (await objectsIn("acme")).find(({ metadata }) => metadata?.name === "moved");
  const stays = (await objectsIn("acme")).find(({ metadata }) => metadata?.name === "stays");
  assert.match(
    moved === undefined ? "" : sealOf(moved),
    new RegExp(`region=${renamed}&.*adopted=${moved?.metadata?.uid}`),
  );
  assert.match(stays === undefined ? "" : sealOf(stays), new RegExp(`region=${region}&`));
  await second.stop();
});
