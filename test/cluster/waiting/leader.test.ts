// Two agent processes of one region on a real Kubernetes. Who wrote what is read from the API server's audit log: no write
// of a former leader arrives after the first one of its successor, whatever happened to it.
import assert from "node:assert/strict";
import { after, before, type TestContext, test } from "node:test";
import { createKubeApi } from "../../../src/kube/client.ts";
import { listAll } from "../../../src/kube/list-all.ts";
import { leases, replicaSets } from "../../../src/kube/resources.ts";
import { agentToken } from "../../integration/agent/agent-world.ts";
import { dev as region, serveControlPlane, token } from "../../integration/server/served-control-plane.ts";
import { type AgentProcess, startAgentProcess } from "../../support/agent-process.ts";
import { type AuditedCall, loadAuditedCalls } from "../../support/audit-log.ts";
import { realServerTarget } from "../../support/cluster/contract-target.ts";
import { clusterUnderTest } from "../../support/cluster-under-test.ts";
import { installRights, type ServiceAccountAccess } from "../../support/deployed-rights.ts";
import { applyDeployment } from "../../support/deployment-messages.ts";
import { eventually } from "../../support/eventually.ts";
import { fetchHttp1 } from "../../support/http-clients.ts";
import { buildKrane } from "../../support/krane-process.ts";

const cluster = clusterUnderTest();
const never = new AbortController().signal;
const objects = 60;
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

async function createRegion(t: TestContext) {
  const { admin, running } = await serveControlPlane(t, "h2c");
  const { transport } = realServerTarget(cluster);
  t.after(() => transport.close());
  const api = createKubeApi(transport);
  const place = {
    program: krane.program,
    region,
    controlPlane: { url: running?.url ?? assert.fail("it is not served"), token },
    kubeconfigPath: account.kubeconfigPath,
    agentToken,
  };
  const startAgent = async (id: string) => {
    const env = { UNKEY_INSTANCE_ID: id, UNKEY_LEASE: "required", UNKEY_RECONCILE_WORKERS: "4" };
    return { id, ...(await startAgentProcess(t, place, env)) };
  };
  /** A new version of every object, with one replica more than the last. Nothing runs: the cluster has no such images. */
  let size = 0;
  const change = async () => {
    size += 1;
    for (let index = 0; index < objects; index++)
      await admin.setDeployment(
        region,
        applyDeployment({ k8sName: `web-${index}`, deploymentId: `d_${index}`, replicas: size }),
      );
    return size;
  };
  const sizes = async () =>
    (await listAll(api, replicaSets, { namespace: "acme" }, ({ spec }) => spec?.replicas ?? 0, never)).items;
  const leader = async () => {
    const { items } = await api.list(leases, { namespace: "krane" }, never);
    return items[0]?.spec?.holderIdentity?.replace(/_[0-9a-f]{8}$/, "") ?? "";
  };
  return { api, startAgent, change, sizes, leader };
}

type Region = Awaited<ReturnType<typeof createRegion>>;

/** The lowest replicas that each object may still have: they only grow. Stops with the test. */
function watchSizes(t: TestContext, { api }: Region): { readonly decreased: readonly string[] } {
  const decreased: string[] = [];
  const highest = new Map<string, number>();
  const stopping = new AbortController();
  t.after(() => stopping.abort());
  const follow = async () => {
    for await (const event of api.watch(replicaSets, { namespace: "acme" }, stopping.signal)) {
      if (event.type === "BOOKMARK") continue;
      const { metadata, spec } = event.object;
      const [name, size] = [metadata?.name ?? "", spec?.replicas ?? 0];
      if (event.type === "DELETED" || size < (highest.get(name) ?? 0)) decreased.push(`${name}: ${size}`);
      highest.set(name, size);
    }
  };
  follow().catch(() => undefined);
  return { decreased };
}

const writeVerbs = new Set(["create", "patch", "update", "delete", "deletecollection"]);
const isStored = ({ resource }: AuditedCall) => resource !== "leases" && !resource.endsWith("reviews");

async function writes(): Promise<readonly AuditedCall[]> {
  const calls = await loadAuditedCalls(cluster.auditLogPath);
  return calls.filter((call) => call.user === account.user && writeVerbs.has(call.verb) && isStored(call));
}

const writer = ({ userAgent }: AuditedCall) => /\((.*)\)$/.exec(userAgent)?.[1] ?? "";

async function writesOf(id: string): Promise<readonly AuditedCall[]> {
  return (await writes()).filter((call) => writer(call) === id);
}

/** Everything that the former leader wrote was over before its successor began. */
async function assertHandedOver(from: string, to: string): Promise<void> {
  const ended = (await writesOf(from)).map(({ answeredAt }) => answeredAt).sort();
  const began = (await writesOf(to)).map(({ receivedAt }) => receivedAt).sort();
  const [last, first] = [ended.at(-1) ?? assert.fail(`${from} wrote nothing`), began[0]];
  assert.ok(first === undefined || last < first, `${from} wrote until ${last}, ${to} from ${first}`);
}

async function untilAll({ sizes }: Region, size: number): Promise<void> {
  await eventually(
    `every object has ${size} replicas`,
    async () => assert.deepEqual(await sizes(), Array(objects).fill(size)),
    { deadlineMs: 90_000 },
  );
}

async function untilLeads({ leader }: Region, { id }: { readonly id: string }, deadlineMs = 30_000) {
  await eventually(`${id} leads`, async () => assert.equal(await leader(), id), { deadlineMs });
}

async function untilBusy(id: string, before: number): Promise<void> {
  await eventually(`${id} is in the middle of it`, async () =>
    assert.ok((await writesOf(id)).length > before + 10),
  );
}

async function readiness({ url }: Pick<AgentProcess, "url">) {
  const { status, body } = await fetchHttp1(`${url}/health/ready`);
  return [status, JSON.parse(body).lease];
}

test("a leader that is stalled, stopped or killed never writes into its successor's time", async (t) => {
  const world = await createRegion(t);
  const [first, second] = [await world.startAgent("first"), await world.startAgent("second")];
  await untilLeads(world, first);
  await eventually("the standby is ready and says who leads", async () =>
    assert.deepEqual(await readiness(second), [200, "standby; first leads"]),
  );
  await untilAll(world, await world.change());
  assert.equal((await writesOf("second")).length, 0);
  const watched = watchSizes(t, world);

  await t.test("stalled in the middle of a bulk", async () => {
    const before = (await writesOf("first")).length;
    const size = await world.change();
    await untilBusy("first", before);
    first.stall();
    await untilLeads(world, second);
    await untilAll(world, size);
    first.resume();
    await eventually("the former leader is a standby", async () =>
      assert.deepEqual(await readiness(first), [200, "standby; second leads"]),
    );
    await assertHandedOver("first", "second");
  });

  await t.test("stopped while everything is in sync: the successor writes nothing", async () => {
    const before = (await writesOf("first")).length;
    await second.stop();
    await untilLeads(world, first, 6_000);
    // Long enough to look at every key.
    await eventually("it leads", async () => assert.deepEqual(await readiness(first), [200, undefined]));
    assert.equal((await writesOf("first")).length, before);
  });

  await t.test("killed in the middle of a bulk", async () => {
    const third = await world.startAgent("third");
    const before = (await writesOf("first")).length;
    const size = await world.change();
    await untilBusy("first", before);
    first.kill();
    await untilLeads(world, third);
    await untilAll(world, size);
    await assertHandedOver("first", "third");
    await third.stop();
  });

  assert.deepEqual(watched.decreased, [], "no object went back to an older version");
  for (const id of ["first", "second", "third"])
    assert.deepEqual(
      (await writesOf(id)).filter(({ verb }) => verb.startsWith("delete")),
      [],
    );
});
