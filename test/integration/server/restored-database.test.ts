// A real agent whose control plane's PostgreSQL is restored, rolled back or failed over with the tools of operators: the
// agent follows the restored state, deletes nothing, and cannot be led back by the server that was left behind.
import assert from "node:assert/strict";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { run } from "../../../src/agent/run.ts";
import { createSystemClock } from "../../../src/concurrency/clock.ts";
import { Secret } from "../../../src/config/secret.ts";
import { createControlPlane } from "../../../src/control-plane/connection.ts";
import { kinds } from "../../../src/kinds/kinds.ts";
import { replicaSets } from "../../../src/kube/resources.ts";
import { applyDeployment } from "../../support/deployment-messages.ts";
import { eventually } from "../../support/eventually.ts";
import { startFaultProxy } from "../../support/fault-proxy.ts";
import { freePort } from "../../support/krane-process.ts";
import { findPostgresTools, PostgresCluster } from "../../support/postgres-cluster.ts";
import { type RunningServer, startServer } from "../../support/running-server.ts";
import { kubeconfigFor, serveCluster } from "../../support/served-cluster.ts";
import { agentDeps, parse } from "../agent/agent-world.ts";

const region = "local.dev";
const token = "token-of-the-test";
const count = 10;
const bin = findPostgresTools();
const skip = bin === undefined && "this machine has not all of PostgreSQL's tools";
// An agent whose connections were refused retries within a minute, and a resync pass comes once a minute.
const never = new AbortController().signal;
const patience = { deadlineMs: 150_000 };

async function startWorld(t: TestContext, port: number) {
  const cluster = await serveCluster();
  t.after(() => cluster.stop());
  const config = parse(`region = "${region}"
rpc_port = ${await freePort()}
[control]
url = "http://127.0.0.1:${port}"
token = "${token}"
[kubernetes]
kubeconfig = "kubeconfig"
`);
  const stopping = new AbortController();
  const agent = run(config, agentDeps({ kubeconfig: kubeconfigFor(cluster.url) }), stopping.signal);
  t.after(() => {
    stopping.abort();
    return agent;
  });
  const sets = async () => {
    const { items } = await cluster.api.list(replicaSets, {}, never);
    return new Map(
      items.map(({ metadata, spec }) => [
        metadata?.name ?? "",
        { uid: metadata?.uid, replicas: spec?.replicas },
      ]),
    );
  };
  return { sets };
}

type World = Awaited<ReturnType<typeof startWorld>>;

function serve(url: string, port: number): Promise<RunningServer> {
  return startServer({
    "database-url": url,
    listen: `127.0.0.1:${port}`,
    "agent-tokens": `${region} ${token}`,
  });
}

function web(index: number, replicas = 1) {
  return applyDeployment({ deploymentId: `d_${index}`, k8sName: `web-${index}`, replicas });
}

async function fill({ admin }: RunningServer, { sets }: World): Promise<void> {
  for (let index = 1; index <= count; index++) await admin.setDeployment(region, web(index));
  await eventually("all are applied", async () => assert.equal((await sets()).size, count), patience);
}

/** What happens after the backup, and is lost with the restore. */
async function change({ admin }: RunningServer, { sets }: World, added: number): Promise<void> {
  await admin.scale(region, "d_1", 2);
  await admin.deleteDeployment(region, "d_2");
  await admin.setDeployment(region, web(added));
  const isApplied = async () => {
    const now = await sets();
    assert.deepEqual(
      [now.get("web-1")?.replicas, now.has("web-2"), now.has(`web-${added}`)],
      [2, false, true],
    );
  };
  await eventually("the changes are applied", isApplied, patience);
}

/** The state of the backup is applied and reported; what was added since keeps running, and nothing was replaced. */
async function followed(
  { admin }: RunningServer,
  { sets }: World,
  before: Awaited<ReturnType<World["sets"]>>,
) {
  const isFollowed = async () => {
    const now = await sets();
    assert.deepEqual([now.get("web-1")?.replicas, now.has("web-2")], [1, true]);
    for (const [name, { uid }] of before) assert.equal(now.get(name)?.uid, uid, `${name} was not deleted`);
    for (let index = 1; index <= count; index++)
      assert.equal((await admin.deploymentReport(region, `d_${index}`))?.instances.length, 1);
  };
  await eventually("the restored state is applied and reported", isFollowed, patience);
}

async function ordinalOf({ store }: RunningServer): Promise<bigint> {
  return (await store.incarnation())?.ordinal ?? 0n;
}

test("an agent follows a database that was dumped and restored, restored in place, or put back", {
  skip,
}, async (t) => {
  const postgres = await PostgresCluster.start(t, bin ?? "");
  const port = await freePort();
  const world = await startWorld(t, port);
  let server = await serve(postgres.url(), port);
  t.after(() => server.stop());
  await fill(server, world);
  const ordinals = [await ordinalOf(server)];
  const dump = join(postgres.folder, "dump");

  const restore = async (added: number, backUp: () => Promise<void>, putBack: () => Promise<string>) => {
    await backUp();
    await change(server, world, added);
    const before = await world.sets();
    await server.stop();
    server = await serve(await putBack(), port);
    await followed(server, world, before);
    ordinals.push(await ordinalOf(server));
  };
  const backUp = async (database: string) =>
    postgres.run("pg_dump", ["-Fc", "-f", dump, "-d", postgres.url(database)]);

  await t.test("pg_restore into a new database", () =>
    restore(
      11,
      () => backUp("postgres"),
      async () => {
        await postgres.sql("CREATE DATABASE restored");
        postgres.run("pg_restore", ["-d", postgres.url("restored"), dump]);
        return postgres.url("restored");
      },
    ),
  );
  await t.test("pg_restore --clean into the same database", () =>
    restore(
      12,
      () => backUp("restored"),
      async () => {
        postgres.run("pg_restore", ["--clean", "--if-exists", "-d", postgres.url("restored"), dump]);
        return postgres.url("restored");
      },
    ),
  );
  await t.test("an old data folder put back", () => {
    const copy = join(postgres.folder, "copy");
    const takeCopy = async () => {
      await postgres.stop();
      postgres.copyData(postgres.data, copy);
      await postgres.start();
    };
    return restore(13, takeCopy, async () => {
      await postgres.stop();
      postgres.copyData(copy, postgres.data);
      await postgres.start();
      return postgres.url("restored");
    });
  });
  assert.deepEqual(
    ordinals,
    [...new Set(ordinals)].sort((a, b) => (a < b ? -1 : 1)),
    "each restore started a newer incarnation",
  );
});

test("an agent follows a promoted replica, and not the old primary that still answers", {
  skip,
}, async (t) => {
  const postgres = await PostgresCluster.start(t, bin ?? "");
  const ports = [await freePort(), await freePort()] as const;
  const proxy = await startFaultProxy(t, ports[0]);
  const world = await startWorld(t, proxy.port);
  const old = await serve(postgres.url(), ports[0]);
  t.after(() => old.stop());
  await fill(old, world);
  const replica = await postgres.copyAsReplica(t);
  await change(old, world, 11);
  const before = await world.sets();
  const client = createControlPlane(
    {
      controller: "deployments",
      baseUrl: proxy.url,
      region: { name: "local", platform: "dev", label: region },
      token: { current: async () => new Secret(token), refresh: () => undefined },
    },
    { clock: createSystemClock() },
  );
  t.after(() => client.close());
  assert.equal((await client.get(kinds.deployment, { id: "d_11" }, never)).kind, "found");

  const promoted = await serve(replica.url(), ports[1]);
  t.after(() => promoted.stop());
  assert.deepEqual(await promoted.store.incarnation(), {
    ...(await old.store.incarnation()),
    isReplica: true,
  });
  proxy.target(ports[1]);
  proxy.cut();
  const newest = (await old.admin.agents()).at(0)?.newestVersion ?? 0n;
  client.history.follow({
    seen: () => newest,
    onNewIncarnation: () => undefined,
    onIgnored: () => undefined,
  });
  // The object that it does not have yet, too: that it does not know it would count as an absence.
  for (const id of ["d_1", "d_11"])
    await assert.rejects(
      client.get(kinds.deployment, { id }, never),
      /this replica is at version 10 .* behind version 13/,
    );
  await eventually("the agent has connected", async () => assert.ok(proxy.connectionCount() > 1), patience);
  assert.deepEqual(await world.sets(), before, "a replica that lags brings nothing back");

  replica.promote();
  await followed(promoted, world, before);
  assert.ok((await ordinalOf(promoted)) > (await ordinalOf(old)));

  await old.admin.scale(region, "d_1", 9);
  const after = await world.sets();
  for (const port of [ports[0], ports[1], ports[0]]) {
    proxy.target(port);
    proxy.cut();
    await eventually("the agent has connected", async () => assert.ok(proxy.connectionCount() > 0), patience);
  }
  proxy.target(ports[1]);
  proxy.cut();
  await promoted.admin.scale(region, "d_3", 3);
  await eventually(
    "the promoted one is followed",
    async () => assert.equal((await world.sets()).get("web-3")?.replicas, 3),
    patience,
  );
  const now = await world.sets();
  for (const [name, set] of after) if (name !== "web-3") assert.deepEqual(now.get(name), set);
});
