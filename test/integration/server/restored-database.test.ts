// A real agent whose control plane's PostgreSQL is restored, rolled back or failed over with the tools of operators: the
// agent follows the restored state, deletes nothing, and cannot be led back by the server that was left behind.
import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { createSystemClock } from "../../../src/concurrency/clock.ts";
import { Secret } from "../../../src/config/secret.ts";
import { createControlPlane } from "../../../src/control-plane/connection.ts";
import { kinds } from "../../../src/kinds/kinds.ts";
import { replicaSets } from "../../../src/kube/resources.ts";
import { applyDeployment } from "../../support/deployment-messages.ts";
import { eventually } from "../../support/eventually.ts";
import { startFaultProxy } from "../../support/fault-proxy.ts";
import { followStates } from "../../support/followed-states.ts";
import { freePort } from "../../support/krane-process.ts";
import { findPostgresTools, PostgresCluster } from "../../support/postgres-cluster.ts";
import { type RunningServer, startServer } from "../../support/running-server.ts";
import { serveCluster } from "../../support/served-cluster.ts";
import { runAgent } from "../agent/agent-world.ts";

const region = "local.dev";
const token = "token-of-the-test";
const isLong = process.env["KRANE_TEST_LONG"] === "1";
const counts = isLong ? [1, 10, 2_000] : [1, 10];
const bin = findPostgresTools();
const skip = bin === undefined && "this machine has not all of PostgreSQL's tools";
// An agent whose connections were refused retries within a minute, and a resync pass comes once a minute.
const never = new AbortController().signal;
const patience = { deadlineMs: isLong ? 600_000 : 150_000 };

async function startWorld(t: TestContext, port: number) {
  const cluster = await serveCluster();
  t.after(() => cluster.stop());
  await runAgent(t, cluster, { region, port, token });
  const live = new Map<string, { readonly uid: string | undefined; readonly replicas: number | undefined }>();
  followStates(t, cluster.api, { kind: replicaSets, namespace: "acme" }, (set, isDeleted) => {
    const name = set.metadata?.name ?? "";
    if (isDeleted) live.delete(name);
    else live.set(name, { uid: set.metadata?.uid, replicas: set.spec?.replicas });
  });
  return { sets: () => new Map(live) };
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

async function fill({ admin }: RunningServer, { sets }: World, count: number): Promise<void> {
  for (let index = 1; index <= count; index++) await admin.setDeployment(region, web(index));
  await eventually("all are applied", async () => assert.equal(sets().size, count), patience);
}

/** Which of so many objects are changed and deleted after the backup. One that is alone is deleted. */
function changesOf(count: number) {
  return count === 1 ? { deleted: 1 } : { scaled: 1, deleted: 2 };
}

/** What happens after the backup, and is lost with the restore. */
async function change({ admin }: RunningServer, { sets }: World, count: number, added: number) {
  const { scaled, deleted } = changesOf(count);
  if (scaled !== undefined) await admin.scale(region, `d_${scaled}`, 2);
  await admin.deleteDeployment(region, `d_${deleted}`);
  await admin.setDeployment(region, web(added));
  const isApplied = async () => {
    const now = sets();
    assert.deepEqual([now.has(`web-${deleted}`), now.has(`web-${added}`)], [false, true]);
    if (scaled !== undefined) assert.equal(now.get(`web-${scaled}`)?.replicas, 2);
  };
  await eventually("the changes are applied", isApplied, patience);
}

/** The state of the backup is applied and reported; what was added since keeps running, and nothing was replaced. */
async function followed(
  { admin }: RunningServer,
  { sets }: World,
  count: number,
  before: ReturnType<World["sets"]>,
) {
  const isFollowed = async () => {
    const now = sets();
    for (const [name, { uid }] of before) assert.equal(now.get(name)?.uid, uid, `${name} was not deleted`);
    for (let index = 1; index <= count; index++) assert.equal(now.get(`web-${index}`)?.replicas, 1);
    for (let index = 1; index <= count; index++)
      assert.equal((await admin.deploymentReport(region, `d_${index}`))?.instances.length, 1);
  };
  await eventually("the restored state is applied and reported", isFollowed, patience);
}

async function ordinalOf({ store }: RunningServer): Promise<bigint> {
  return (await store.incarnation())?.ordinal ?? 0n;
}

/** One region with so many objects, whose database is backed up and restored in several ways, one after the other. */
async function testRestores(t: TestContext, count: number): Promise<void> {
  const postgres = await PostgresCluster.start(t, bin ?? "");
  const port = await freePort();
  const world = await startWorld(t, port);
  let server = await serve(postgres.url(), port);
  t.after(() => server.stop());
  await fill(server, world, count);
  const ordinals = [await ordinalOf(server)];
  let added = count;

  const restore = async (backUp: () => Promise<void>, putBack: () => Promise<string>) => {
    await backUp();
    added += 1;
    await change(server, world, count, added);
    const before = world.sets();
    await server.stop();
    server = await serve(await putBack(), port);
    await followed(server, world, count, before);
    ordinals.push(await ordinalOf(server));
  };
  const dump = join(postgres.folder, "dump");
  const backUp = async (database: string) =>
    postgres.run("pg_dump", ["-Fc", "-f", dump, "-d", postgres.url(database)]);

  await t.test("pg_restore into a new database", () =>
    restore(
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
    return restore(takeCopy, async () => {
      await postgres.stop();
      postgres.copyData(copy, postgres.data);
      await postgres.start();
      return postgres.url("restored");
    });
  });
  await t.test("pg_basebackup, recovered on a new timeline", async () => {
    const recovered = await PostgresCluster.create(t, bin ?? "");
    await restore(
      async () => postgres.backUpTo(recovered),
      async () => {
        await postgres.stop();
        await recovered.recover();
        return recovered.url("restored");
      },
    );
  });
  assert.deepEqual(
    ordinals,
    [...new Set(ordinals)].sort((a, b) => (a < b ? -1 : 1)),
    "each restore started a newer incarnation",
  );
}

/** Why a call fails that may not succeed, leaving out that the connection was cut before. */
async function firstFailure(call: () => Promise<unknown>): Promise<string> {
  let answer: unknown;
  const failure = await eventually("a response on a new connection", async () => {
    const error = await call().then(
      (value) => {
        answer = value;
        return "";
      },
      (reason: unknown) => String(reason),
    );
    assert.doesNotMatch(error, /ECONNRESET/);
    return error;
  });
  assert.equal(answer, undefined, "the call has succeeded");
  return failure;
}

/** A replica is promoted before it has received the changes, and the old primary still answers. */
async function testPromotion(t: TestContext, count: number): Promise<void> {
  const postgres = await PostgresCluster.start(t, bin ?? "");
  const ports = [await freePort(), await freePort()] as const;
  const proxy = await startFaultProxy(t, ports[0]);
  const world = await startWorld(t, proxy.port);
  const old = await serve(postgres.url(), ports[0]);
  t.after(() => old.stop());
  await fill(old, world, count);
  const replica = await postgres.copyAsReplica(t);
  const added = count + 1;
  await change(old, world, count, added);
  const before = world.sets();
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
  assert.equal((await client.get(kinds.deployment, { id: `d_${added}` }, never)).kind, "found");

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
  for (const id of ["d_1", `d_${added}`])
    assert.match(
      await firstFailure(() => client.get(kinds.deployment, { id }, never)),
      new RegExp(`this replica is at version ${count} .* behind version ${newest}`),
    );
  await eventually(
    "the agent has connected",
    async () => assert.ok(proxy.connectionCount() > 1, "not yet"),
    patience,
  );
  assert.deepEqual(world.sets(), before, "a replica that lags brings nothing back");

  replica.promote();
  await followed(promoted, world, count, before);
  assert.ok((await ordinalOf(promoted)) > (await ordinalOf(old)));

  await old.admin.scale(region, "d_1", 9);
  const after = world.sets();
  for (const port of [ports[0], ports[1], ports[0]]) {
    proxy.target(port);
    proxy.cut();
    await eventually(
      "the agent has connected",
      async () => assert.ok(proxy.connectionCount() > 0, "not yet"),
      patience,
    );
  }
  proxy.target(ports[1]);
  proxy.cut();
  await promoted.admin.setDeployment(region, web(count + 2));
  await eventually(
    "the promoted one is followed",
    async () => assert.equal(world.sets().get(`web-${count + 2}`)?.replicas, 1),
    patience,
  );
  const now = world.sets();
  for (const [name, set] of after) assert.deepEqual(now.get(name), set);
}

// Small ones mostly wait for an agent to reconnect.
describe("an agent follows", { skip, concurrency: !isLong }, () => {
  for (const count of counts) {
    test(`a database with ${count} objects that was dumped and restored, put back, or recovered`, (t) =>
      testRestores(t, count));
    test(`a promoted replica with ${count} objects, and not the old primary that still answers`, (t) =>
      testPromotion(t, count));
  }
});
