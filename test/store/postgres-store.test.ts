// What only the store in PostgreSQL has to answer for: rows of newer servers, tables that
// several servers make at once, and a database that goes away.
import assert from "node:assert/strict";
import { after, before, type TestContext, test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import type { ClientConfig } from "pg";
import { createSystemClock } from "../../src/concurrency/clock.ts";
import { createSystemRandom } from "../../src/concurrency/random.ts";
import { ReportAgentStateRequestSchema } from "../../src/gen/ctrl/v1/cluster_service_pb.ts";
import { ApplyDeploymentSchema } from "../../src/gen/ctrl/v1/deployment_pb.ts";
import type { ApplyInit } from "../../src/kinds/kinds.ts";
import { createSpec, encodeSpec } from "../../src/server/kind-messages.ts";
import { connectAlone } from "../../src/server/postgres/database.ts";
import { steps } from "../../src/server/postgres/migration-steps.ts";
import { migrate, migrationLock } from "../../src/server/postgres/migrations.ts";
import { startPostgresStore } from "../../src/server/postgres/postgres-store.ts";
import { StoreError, type StoreErrorCode, stateOf } from "../../src/server/store.ts";
import { eventually } from "../support/eventually.ts";
import { createQuietLog } from "../support/quiet-log.ts";
import { createStoreAdmin } from "../support/store-admin.ts";
import { type OpenDatabase, openDatabase } from "./store-target.ts";

const deps = { clock: createSystemClock(), random: createSystemRandom(), log: createQuietLog() };
const author = { by: "test", atMs: 1 };
const hasCode = (code: StoreErrorCode) => (error: unknown) =>
  error instanceof StoreError && error.code === code;
const ascending = (a: bigint, b: bigint) => Number(a - b);
const deployment = (id: string, more: ApplyInit<"deployment"> = {}) =>
  createSpec("deployment", { deploymentId: id, k8sName: `app-${id}`, k8sNamespace: "one", ...more });

let target: OpenDatabase;
let database: ClientConfig;

before(async () => {
  target = await openDatabase();
  database = target.database;
});

after(() => target.close());

const sql: OpenDatabase["sql"] = (...statement) => target.sql(...statement);

test("a row that a newer server wrote moves cursors, is not changed in part, and can be replaced", async () => {
  const { store } = target;
  const region = "newer.test";
  await store.registerRegion(region);
  for (const id of ["a", "b", "c", "d"]) await store.put(region, "deployment", deployment(id), author);
  const update = (id: string, change: string) =>
    sql(`UPDATE krane.objects SET ${change} WHERE region = $1 AND id = $2`, [region, id]);
  await update("a", "format = 2");
  await update("b", "desired = 'hibernating'");
  await update("c", "spec = '\\xff'");
  const { rows } = await store.changesSince(region, "deployment", 0n, 10);
  assert.deepEqual(
    rows.map((row) => [row.id, row.desired, stateOf("deployment", row).version]),
    [
      ["a", "unreadable", 1n],
      ["b", "unreadable", 2n],
      ["c", "unreadable", 3n],
      ["d", "running", 4n],
    ],
  );
  for (const id of ["a", "b", "c"]) {
    await assert.rejects(store.stop(region, "deployment", id, author), hasCode("unreadable"));
    const edit = store.edit(region, "deployment", id, (spec) => spec, author);
    await assert.rejects(edit, hasCode("unreadable"));
  }
  // Nobody here can see whose they are, so they may be of any.
  await store.changeEnvironment(
    region,
    "e",
    () => ({ workspaceId: "", projectId: "", secrets: new Map() }),
    author,
  );
  await assert.rejects(store.removeEnvironment(region, "e", author), hasCode("in_use"));
  assert.equal(await store.put(region, "deployment", deployment("a"), author), 5n);
  assert.equal((await store.row(region, "deployment", "a"))?.desired, "running");
});

test("a field that only a newer server knows survives an edit by this one", async () => {
  const { store } = target;
  const region = "fields.test";
  await store.registerRegion(region);
  await store.put(region, "deployment", deployment("a"), author);
  const unknown = new BinaryWriter().tag(999, WireType.LengthDelimited).string("of tomorrow").finish();
  const bytes = Buffer.concat([toBinary(ApplyDeploymentSchema, deployment("a")), unknown]);
  await sql("UPDATE krane.objects SET spec = $2 WHERE region = $1", [region, bytes]);
  const scale = (spec: ReturnType<typeof deployment>) => {
    spec.replicas = 3;
    return spec;
  };
  await store.edit(region, "deployment", "a", scale, author);
  const row = await store.row(region, "deployment", "a");
  assert.equal(row?.spec.replicas, 3);
  assert.deepEqual(
    row?.spec.$unknown?.map(({ no }) => no),
    [999],
  );
});

test("servers that start at the same time on an empty database make its tables once", async () => {
  await sql("CREATE DATABASE fresh");
  const fresh = { ...database, database: "fresh" };
  const started = await Promise.all(Array.from({ length: 4 }, () => startPostgresStore(fresh, deps)));
  await Promise.all(started.map(({ store }) => store.registerRegion("one.test")));
  const versions = await Promise.all(
    started.map(({ store }, index) => store.put("one.test", "deployment", deployment(`d${index}`), author)),
  );
  assert.deepEqual(versions.map(Number).sort(), [1, 2, 3, 4]);
  const ran = await sql("SELECT step FROM krane.migrations ORDER BY step", [], fresh);
  assert.deepEqual(
    ran,
    steps.map((_, index) => ({ step: index + 1 })),
  );
  // A newer server has been here: this one leaves its tables alone and goes on.
  await sql("INSERT INTO krane.migrations (step) VALUES (1000)", [], fresh);
  const older = await startPostgresStore(fresh, deps);
  assert.equal((await older.store.rows("one.test", "deployment")).length, 4);
  await Promise.all([...started, older].map(({ close }) => close()));
});

test("a server waits for one that is at work on the tables, as long as it takes, and can be stopped", async (t) => {
  await sql("CREATE DATABASE waiting");
  const waiting = { ...database, database: "waiting" };
  const [atWork, second] = await Promise.all([connectAlone(waiting), connectAlone(waiting)]);
  t.after(() => Promise.all([atWork.end(), second.end()]));
  await atWork.query("SELECT pg_advisory_lock($1)", [migrationLock]);
  let words = 0;
  const onWaiting = () => {
    words += 1;
  };
  const migrating = migrate(second, { quietMs: 20, onWaiting });
  await eventually("it says so more than once", async () => assert.ok(words > 1, "not yet"));
  const stopped = new AbortController();
  const starting = startPostgresStore(waiting, deps, stopped.signal);
  await eventually("a third one waits", async () => {
    const held =
      "SELECT 1 FROM pg_stat_activity WHERE application_name = 'krane server: tables' AND datname = $1";
    assert.equal((await sql(held, ["waiting"])).length, 1);
  });
  stopped.abort();
  await assert.rejects(starting);
  await atWork.query("SELECT pg_advisory_unlock($1)", [migrationLock]);
  assert.ok((await migrating) > 0);
});

/** A database as an earlier version of krane left it, with two regions, and a way to write its history. */
async function openOlder(t: TestContext, name: string, stepsMax = 1) {
  await sql(`CREATE DATABASE ${name}`);
  const config = { ...database, database: name };
  const client = await connectAlone(config);
  t.after(() => client.end());
  await migrate(client, { stepsMax });
  // As long as a server waits.
  await client.query("SET lock_timeout TO 5000");
  for (const region of ["a.test", "b.test"]) {
    await client.query("INSERT INTO regions (name) VALUES ($1)", [region]);
    await client.query("INSERT INTO agents (region) VALUES ($1)", [region]);
  }
  const enter = (region: string, id: string) =>
    client.query(
      `INSERT INTO history (region, at_ms, author, kind, id, version, event, outcome)
       VALUES ($1, 1, 'old', 'deployment', $2, 1, 'set', '')`,
      [region, id],
    );
  const start = async () => {
    const starting = startPostgresStore(config, deps);
    t.after(() =>
      starting.then(
        ({ close }) => close(),
        () => undefined,
      ),
    );
    return (await starting).store;
  };
  return { config, client, enter, start };
}

test("the history of an older server is numbered, also what it writes beside this one", async (t) => {
  const { enter, start } = await openOlder(t, "grown");
  await enter("a.test", "1");
  await enter("b.test", "2");
  await enter("a.test", "3");
  const store = await start();
  await enter("a.test", "4");
  await store.put("a.test", "deployment", deployment("5"), author);
  const { entries, newest } = await store.historySince("a.test", 0n, { limit: 10 });
  assert.deepEqual(
    entries.map(({ id }) => id),
    ["1", "3", "4", "5"],
  );
  const numbers = entries.map(({ number }) => number);
  assert.deepEqual(numbers, [...new Set(numbers)].sort(ascending));
  assert.equal(newest, numbers.at(-1));
  assert.deepEqual([...(await store.history("a.test", { limit: 10 }))].reverse(), entries);
});

test("a long history is numbered bit by bit, and from where a server stopped in between", async (t) => {
  const { config, client, enter, start } = await openOlder(t, "long");
  // Of a role that is protected from people: nothing that takes a while would be let through.
  await sql("ALTER DATABASE long SET statement_timeout = '30ms'");
  await client.query(
    `INSERT INTO history (region, at_ms, author, kind, id, version, event, outcome)
     SELECT 'a.test', n, 'old', 'deployment', 'a', n, 'set', '' FROM generate_series(1, 25000) n`,
  );
  const migrating = await connectAlone(config);
  await migrate(migrating, { stepsMax: 2 });
  await migrating.end();
  await enter("a.test", "while it is stopped");
  const store = await start();
  const [first] = (await store.historySince("a.test", 0n, { limit: 1 })).entries;
  const [newest] = await store.history("a.test", { limit: 1 });
  assert.deepEqual([first?.version, newest?.id], [1n, "while it is stopped"]);
  const [count] = await sql(
    "SELECT count(*)::integer AS all, count(DISTINCT number)::integer AS numbered FROM krane.history",
    [],
    { ...config, options: "-c statement_timeout=0" },
  );
  assert.deepEqual(count, { all: 25_001, numbered: 25_001 });
});

test("new tables are made beside an older server at work, which fails nothing of its own", async (t) => {
  const lockedBy = {
    change: "UPDATE regions SET counter = counter + 1 WHERE name = 'a.test'",
    report: "SELECT 1 FROM agents WHERE region = 'a.test' FOR UPDATE",
  };
  for (const [work, lock] of Object.entries(lockedBy)) {
    const { config, client, enter, start } = await openOlder(t, `busy_${work}`);
    await client.query("BEGIN");
    await client.query(lock);
    const starting = start();
    await eventually("the new server waits", async () => {
      const waiting = await sql(
        "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = $1",
        [config.database],
      );
      assert.equal(waiting.length, 1);
    });
    await client.query(
      `INSERT INTO objects (region, kind, id, name, desired, format, spec, version)
       VALUES ('a.test', 'deployment', 'a', 'app-a', 'running', 1, '', 1)`,
    );
    await enter("a.test", "a");
    await client.query("COMMIT");
    const store = await starting;
    assert.equal((await store.history("a.test", { limit: 10 })).length, 1);
  }
});

test("what an older server kept is read, shown, deleted and forgotten as what is new", async (t) => {
  const { client, start } = await openOlder(t, "kept", 3);
  const policySpec = { ciliumNetworkPolicyId: "p", k8sName: "rule", k8sNamespace: "one" };
  const rows = [
    ["deployment", "wanted", "running", encodeSpec("deployment", deployment("wanted")), null],
    ["deployment", "gone", "stopped", encodeSpec("deployment", deployment("gone")), null],
    ["policy", "p", "running", encodeSpec("policy", createSpec("policy", policySpec)), "wanted"],
  ] as const;
  for (const [index, [kind, id, desired, spec, owner]] of rows.entries()) {
    await client.query(
      `INSERT INTO objects (region, kind, id, name, desired, format, spec, deployment_id, version)
       VALUES ('a.test', $1, $2, $3, $4, 1, $5, $6, $7)`,
      [kind, id, kind === "policy" ? "one/rule" : `app-${id}`, desired, Buffer.from(spec), owner, index + 1],
    );
  }
  await client.query("UPDATE regions SET counter = 3 WHERE name = 'a.test'");
  const controllers = [{ name: "deployments", stream: { cursor: 2n } }];
  const state = create(ReportAgentStateRequestSchema, { state: { instanceId: "ins_1", controllers } });
  const said = Buffer.from(toBinary(ReportAgentStateRequestSchema, state));
  await client.query("UPDATE agents SET state = $1, state_at_ms = 5000 WHERE region = 'a.test'", [said]);

  const store = await start();
  const [agent] = await store.agents("a.test");
  assert.equal(agent?.known?.report.state?.controllers[0]?.stream?.settledUpTo, 2n);
  const retention = { ageMaxMs: 1_000, entriesMax: 10 };
  await store.trimHistory(retention, 2_000);
  await store.trimHistory(retention, 4_000);
  assert.deepEqual(
    (await store.rows("a.test", "deployment")).map(({ id }) => id),
    ["wanted"],
  );
  await createStoreAdmin(store, { clock: deps.clock, by: "ann" }).deleteDeployment("a.test", "wanted");
  const { rows: policies, counter } = await store.changesSince("a.test", "policy", 3n, 10);
  assert.deepEqual([policies.map(({ id, desired }) => `${id} ${desired}`), counter], [["p stopped"], 5n]);
});

test("a deployment that is reported back at the last moment is not forgotten", async (t) => {
  const { store, other } = target;
  const region = "last-moment.test";
  await store.registerRegion(region);
  await store.put(region, "deployment", deployment("a"), author);
  await store.stop(region, "deployment", "a", author);
  await store.report(
    region,
    "deployment",
    { name: "app-a", id: "" },
    { exists: false, instances: [], atMs: 1 },
  );
  const retention = { ageMaxMs: 1_000, entriesMax: 1_000 };
  await store.trimHistory(retention, 10_000);
  const client = await connectAlone(database);
  t.after(() => client.end());
  // As a report does, in the same order.
  await client.query("BEGIN");
  await client.query("SELECT 1 FROM krane.agents WHERE region = $1 FOR UPDATE", [region]);
  await client.query("SELECT 1 FROM krane.objects WHERE region = $1 FOR KEY SHARE", [region]);
  await client.query("UPDATE krane.reports SET present = true WHERE region = $1", [region]);
  const trimming = other.trimHistory(retention, 20_000);
  await eventually("it waits for the report", async () => {
    const waiting = await sql("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'");
    assert.equal(waiting.length, 1);
  });
  await client.query("COMMIT");
  await trimming;
  assert.equal((await store.row(region, "deployment", "a"))?.desired, "stopped");
});

test("what an older server beside this one heard of an agent adds to what is known", async () => {
  const { store } = target;
  const region = "beside.test";
  await store.registerRegion(region);
  await store.put(region, "deployment", deployment("a"), author);
  const reportOf = (instanceId: string, cursor: bigint) =>
    create(ReportAgentStateRequestSchema, {
      state: { instanceId, controllers: [{ name: "deployments", stream: { cursor } }] },
    });
  await store.reportAgent(region, { report: reportOf("ins_1", 1n), atMs: 1 });
  const state = Buffer.from(toBinary(ReportAgentStateRequestSchema, reportOf("ins_2", 0n)));
  await sql("UPDATE krane.agents SET state = $2, state_at_ms = 2 WHERE region = $1", [region, state]);
  const [agent] = await store.agents(region);
  assert.equal(agent?.known?.report.state?.controllers[0]?.stream?.settledUpTo, 1n);
  assert.deepEqual([agent?.known?.atMs, agent?.known?.report.state?.instanceId], [2, "ins_2"]);
});

test("while the database takes no connections a call says so, and goes well again afterwards", async () => {
  await sql("CREATE DATABASE away");
  const away = { ...database, database: "away" };
  const { store, close } = await startPostgresStore(away, deps);
  await store.registerRegion("one.test");
  const shut = async (isOpen: boolean) => {
    await sql(`ALTER DATABASE away ALLOW_CONNECTIONS ${isOpen}`);
    await sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'away'");
  };
  await shut(false);
  await assert.rejects(store.put("one.test", "deployment", deployment("a"), author), hasCode("unavailable"));
  await assert.rejects(store.rows("one.test", "deployment"), hasCode("unavailable"));
  await shut(true);
  assert.equal(await store.put("one.test", "deployment", deployment("a"), author), 1n);
  await close();
});

test("of large objects fewer come at once, and one at least", async () => {
  const { store } = target;
  const region = "bytes.test";
  await store.registerRegion(region);
  for (const [id, bytes] of Object.entries({ a: 3e6, b: 3e6, c: 6e6, d: 1 })) {
    await store.put(region, "deployment", deployment(id, { image: "x".repeat(bytes) }), author);
  }
  const ids = async (afterId: string) =>
    (await store.objects(region, "deployment", afterId, 10)).map(({ row }) => row.id);
  assert.deepEqual(await ids(""), ["a", "b"]);
  assert.deepEqual(await ids("b"), ["c"]);
  assert.deepEqual(await ids("c"), ["d"]);
  assert.deepEqual(await ids("d"), []);
});

test("a deployment and its policies are stopped at once, for every reader", async () => {
  const { store, other } = target;
  const region = "together.test";
  await store.registerRegion(region);
  await store.put(region, "deployment", deployment("a"), author);
  const spec = { ciliumNetworkPolicyId: "p", k8sName: "rule", k8sNamespace: "one" };
  await store.put(region, "policy", createSpec("policy", spec), author, { deploymentId: "a" });
  const client = await connectAlone(database);
  await client.query("BEGIN");
  await client.query("SELECT 1 FROM krane.objects WHERE region = $1 AND id = 'p' FOR UPDATE", [region]);
  const stopping = createStoreAdmin(store, { clock: deps.clock, by: "ann" }).deleteDeployment(region, "a");
  await eventually("the change waits", async () => {
    const waiting = await sql("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'");
    assert.equal(waiting.length, 1);
  });
  assert.equal((await other.row(region, "deployment", "a"))?.desired, "running");
  await client.query("COMMIT");
  await client.end();
  await stopping;
  assert.equal((await other.row(region, "deployment", "a"))?.desired, "stopped");
  assert.equal((await other.row(region, "policy", "p"))?.desired, "stopped");
});

test("a number above 2^53 stays exact", async () => {
  const { store } = target;
  await store.registerRegion("large.test");
  await sql("UPDATE krane.regions SET counter = $1 WHERE name = 'large.test'", [2n ** 60n]);
  assert.equal(await store.put("large.test", "deployment", deployment("a"), author), 2n ** 60n + 1n);
  const { rows, counter } = await store.changesSince("large.test", "deployment", 2n ** 60n, 10);
  assert.deepEqual([rows[0]?.version, counter], [2n ** 60n + 1n, 2n ** 60n + 1n]);
});

test("a change waits for one that is under way, so that its number is not seen first", async () => {
  const { store, other } = target;
  const region = "order.test";
  await store.registerRegion(region);
  const client = await connectAlone(database);
  await client.query("BEGIN");
  await client.query("UPDATE krane.regions SET counter = counter + 1 WHERE name = $1", [region]);
  const second = store.put(region, "deployment", deployment("b"), author);
  const { rows, counter, isFull } = await other.changesSince(region, "deployment", 0n, 10);
  assert.deepEqual([rows, counter, isFull], [[], 0n, false]);
  await client.query("COMMIT");
  await client.end();
  assert.equal(await second, 2n);
});

test("an entry of history waits for one that is under way, so that its number is not seen first", async () => {
  const { store, other } = target;
  const region = "entries.test";
  await store.registerRegion(region);
  const client = await connectAlone(database);
  await client.query("BEGIN");
  // As a report does, which holds another lock than a change.
  await client.query(
    `INSERT INTO krane.history (region, at_ms, author, kind, id, version, event, outcome)
     VALUES ($1, 1, 'agent', 'deployment', 'a', 1, 'reported', 'gone')`,
    [region],
  );
  const second = store.put(region, "deployment", deployment("b"), author);
  await eventually("the change waits", async () => {
    const waiting = await sql("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'");
    assert.equal(waiting.length, 1);
  });
  assert.deepEqual(await other.historySince(region, 0n, { limit: 10 }), { entries: [], newest: 0n });
  await client.query("COMMIT");
  await client.end();
  await second;
  const { entries } = await other.historySince(region, 0n, { limit: 10 });
  assert.deepEqual(
    entries.map(({ number, id }) => `${number} ${id}`),
    ["1 a", "2 b"],
  );
});

async function newDatabase(t: TestContext, name: string) {
  await sql(`CREATE DATABASE ${name}`);
  const config = { ...database, database: name };
  const { store, close } = await startPostgresStore(config, deps);
  t.after(close);
  await store.registerRegion("one.test");
  return { store, config };
}

test("a change of a database that did not start the current incarnation starts a new one first", async (t) => {
  const { store, config } = await newDatabase(t, "copied");
  const before = await store.incarnation();
  await store.put("one.test", "deployment", deployment("a"), author);
  // As after a promotion that no server has noticed.
  await sql("UPDATE krane.incarnations SET facts = 'of another database'", [], config);
  await store.put("one.test", "deployment", deployment("b"), author);
  const { row, incarnation } = await store.find("one.test", "deployment", "b");
  assert.deepEqual([row?.version, incarnation?.parent], [2n, before?.id]);
  assert.ok(before && incarnation && incarnation.ordinal > before.ordinal);
});

test("agents can start three incarnations in ten minutes, with versions that the database does not contain", async (t) => {
  const { store } = await newDatabase(t, "claimed");
  await store.put("one.test", "deployment", deployment("a"), author);
  const claim = async (version: bigint, rowVersion = 0n) => {
    const before = await store.incarnation();
    assert.ok(before);
    const row = { kind: "deployment", id: "a", version: rowVersion } as const;
    const seen = { region: "one.test", incarnationId: before.id, version, row };
    const start = { replaces: before.id, above: before.ordinal, reason: "rolled back", seen } as const;
    const after = await store.startIncarnation(start);
    return after?.id !== before.id;
  };
  assert.equal(await claim(1n, 1n), false, "it contains this version");
  assert.equal(await claim(2n), true);
  assert.equal(await claim(0n, 2n), true, "the version of one object");
  assert.equal(await claim(2n ** 62n), true);
  assert.equal(await claim(2n), false);
});
