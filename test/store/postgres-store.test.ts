// What only the store in PostgreSQL has to answer for: rows of newer servers, tables that
// several servers make at once, and a database that goes away.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { toBinary } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import type { ClientConfig } from "pg";
import { createSystemClock } from "../../src/concurrency/clock.ts";
import { createSystemRandom } from "../../src/concurrency/random.ts";
import { ApplyDeploymentSchema } from "../../src/gen/ctrl/v1/deployment_pb.ts";
import { kinds, type SpecInit } from "../../src/server/kinds.ts";
import { connectAlone } from "../../src/server/postgres/database.ts";
import { startPostgresStore } from "../../src/server/postgres/postgres-store.ts";
import { StoreError, type StoreErrorCode, stateOf } from "../../src/server/store.ts";
import { createQuietLog } from "../support/quiet-log.ts";
import { embeddedTarget, type OpenTarget } from "./store-target.ts";

const deps = { clock: createSystemClock(), random: createSystemRandom(), log: createQuietLog() };
const author = { by: "test", atMs: 1 };
const hasCode = (code: StoreErrorCode) => (error: unknown) =>
  error instanceof StoreError && error.code === code;
const deployment = (id: string, more: SpecInit<"deployment"> = {}) =>
  kinds.deployment.createSpec({ deploymentId: id, k8sName: `app-${id}`, k8sNamespace: "one", ...more });

let target: OpenTarget;
let database: ClientConfig;

before(async () => {
  const opened = await embeddedTarget.open();
  target = typeof opened === "string" ? assert.fail(opened) : opened;
  database = target.database ?? assert.fail("it has no database");
});

after(() => target.close());

async function sql(text: string, values: readonly unknown[] = [], config = database): Promise<unknown[]> {
  const client = await connectAlone(config);
  try {
    return (await client.query(text, [...values])).rows;
  } finally {
    await client.end();
  }
}

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
  const steps = await sql("SELECT step FROM krane.migrations", [], fresh);
  assert.deepEqual(steps, [{ step: 1 }]);
  // A newer server has been here: this one leaves its tables alone and goes on.
  await sql("INSERT INTO krane.migrations (step) VALUES (2)", [], fresh);
  const older = await startPostgresStore(fresh, deps);
  assert.equal((await older.store.rows("one.test", "deployment")).length, 4);
  await Promise.all([...started, older].map(({ close }) => close()));
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
  assert.deepEqual(await other.changesSince(region, "deployment", 0n, 10), { rows: [], counter: 0n });
  await client.query("COMMIT");
  await client.end();
  assert.equal(await second, 2n);
});
