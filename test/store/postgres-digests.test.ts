// Digests in PostgreSQL, where a trigger keeps them whoever writes: a database of an older version, rows that somebody
// changes by hand, and digests that are wrong.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { ClientConfig } from "pg";
import { createSystemClock } from "../../src/concurrency/clock.ts";
import { createSystemRandom } from "../../src/concurrency/random.ts";
import { kindNames } from "../../src/kinds/kinds.ts";
import { bucketCount, bucketOf, sumOf } from "../../src/model/digest.ts";
import { encodeSpec } from "../../src/server/kind-messages.ts";
import { connectAlone, createDatabase } from "../../src/server/postgres/database.ts";
import { DigestTable } from "../../src/server/postgres/digest-table.ts";
import { isMigrated, migrate } from "../../src/server/postgres/migrations.ts";
import { startPostgresStore } from "../../src/server/postgres/postgres-store.ts";
import { eventually } from "../support/eventually.ts";
import { createQuietLog } from "../support/quiet-log.ts";
import { assertDigest } from "./store-digest-contract.ts";
import { deployment, sentinel } from "./store-fixtures.ts";
import { type OpenDatabase, openDatabase } from "./store-target.ts";

const deps = { clock: createSystemClock(), random: createSystemRandom(), log: createQuietLog() };
const author = { by: "test", atMs: 1 };
/** The steps of the last version that kept no digests. */
const stepsBefore = 7;
const allBuckets = [...Array(bucketCount).keys()];

let target: OpenDatabase;
let database: ClientConfig;

before(async () => {
  target = await openDatabase();
  database = target.database;
});

after(() => target.close());

const sql: OpenDatabase["sql"] = (...statement) => target.sql(...statement);

/** As a server writes that knows no digests. */
const insertRow = `INSERT INTO krane.objects (region, kind, id, name, desired, format, spec, version)
  VALUES ($1, 'deployment', $2, $2, $3, 1, $4, $5)`;
const specOf = (id: string) => Buffer.from(encodeSpec("deployment", deployment(id)));

test("the rows of an older version get their digests, and so do those that it writes meanwhile and later", async (t) => {
  await sql("CREATE DATABASE undigested");
  const config = { ...database, database: "undigested" };
  const client = await connectAlone(config);
  t.after(() => client.end());
  await migrate(client, { stepsMax: stepsBefore });
  for (const region of ["a.test", "b.test"]) {
    await client.query("INSERT INTO krane.regions (name, counter) VALUES ($1, 1000)", [region]);
    await client.query(
      `INSERT INTO krane.objects (region, kind, id, name, desired, format, spec, version)
       SELECT $1, 'deployment', n, n, CASE WHEN n % 3 = 0 THEN 'stopped' ELSE 'running' END, 1, spec, n
       FROM unnest($2::bytea[]) WITH ORDINALITY AS row (spec, n)`,
      [region, Array.from({ length: 700 }, (_, index) => specOf(`${index + 1}`))],
    );
  }
  // The columns are there, but no row has been reached yet.
  await migrate(client, { stepsMax: stepsBefore + 1 });
  await client.query("UPDATE krane.objects SET version = 801 WHERE region = 'a.test' AND id = '1'");
  await client.query("DELETE FROM krane.objects WHERE region = 'a.test' AND id = '2'");
  await client.query(insertRow, ["b.test", "new", "running", specOf("new"), 802]);
  const { store, close } = await startPostgresStore(config, deps);
  t.after(close);
  for (const region of ["a.test", "b.test"]) await assertDigest(store, region, "deployment");
  await client.query("UPDATE krane.objects SET desired = 'stopped', version = 803 WHERE id = '4'");
  await client.query("UPDATE krane.objects SET gone_version = 803, gone_at_ms = 1 WHERE id = '4'");
  await client.query("DELETE FROM krane.objects WHERE id = '5'");
  for (const region of ["a.test", "b.test"]) {
    await assertDigest(store, region, "deployment");
    assert.deepEqual(await store.verifyDigests(region), []);
  }
});

test("an index is built beside servers that write, and again if that was interrupted", async (t) => {
  await sql("CREATE DATABASE indexed");
  const config = { ...database, database: "indexed" };
  const [migrating, writing, held] = await Promise.all([1, 2, 3].map(() => connectAlone(config)));
  assert.ok(migrating && writing && held);
  t.after(() => Promise.all([migrating, writing, held].map((client) => client.end())));
  await migrate(migrating);
  await writing.query("INSERT INTO krane.regions (name, counter) VALUES ('a.test', 1000)");
  const write = (client: typeof writing, id: string, version: number) =>
    client.query(insertRow, ["a.test", id, "running", specOf(id), version]);
  const isValid = async () => {
    const found = await sql(
      "SELECT indisvalid AS valid FROM pg_index WHERE indexrelid = to_regclass('krane.objects_bucket')",
      [],
      config,
    );
    return found.map((row) => (row as { readonly valid: boolean }).valid);
  };
  await migrating.query("DROP INDEX krane.objects_bucket");
  await held.query("BEGIN");
  await write(held, "held", 1);
  const interrupted = assert.rejects(migrate(migrating), /canceling statement/);
  await eventually("the build waits for the transaction that has begun", async () => {
    assert.deepEqual(await isValid(), [false]);
  });
  // A write that had to wait would fail.
  await writing.query("SET lock_timeout TO '1ms'");
  await write(writing, "beside", 2);
  await sql("SELECT pg_cancel_backend(pid) FROM pg_stat_progress_create_index", [], config);
  await interrupted;
  assert.deepEqual(await isValid(), [false]);
  const again = migrate(migrating);
  await held.query("COMMIT");
  await again;
  assert.deepEqual(await isValid(), [true]);
});

test("tables that lack a step of this server, as on a replica of an older primary, count as not migrated", async (t) => {
  await sql("CREATE DATABASE behind");
  const client = await connectAlone({ ...database, database: "behind" });
  t.after(() => client.end());
  assert.equal(await isMigrated(client), false);
  await migrate(client, { stepsMax: stepsBefore });
  assert.equal(await isMigrated(client), false);
  await migrate(client);
  assert.equal(await isMigrated(client), true);
});

test("a row that somebody changes by hand, without a version, changes its hash and its digest", async () => {
  const { store } = target;
  const region = "hand.test";
  await store.registerRegion(region);
  await store.put(region, "deployment", deployment("a"), author);
  const before = await store.row(region, "deployment", "a");
  const { sum } = await store.digest(region, "deployment");
  await sql("UPDATE krane.objects SET spec = $2, bucket = 1, content_hash = '\\x00' WHERE region = $1", [
    region,
    Buffer.from(encodeSpec("deployment", deployment("a", { replicas: 9 }))),
  ]);
  const now = await store.row(region, "deployment", "a");
  assert.deepEqual([now?.version, now?.spec.replicas], [before?.version, 9]);
  assert.notDeepEqual(now?.contentHash, before?.contentHash);
  assert.notEqual((await store.digest(region, "deployment")).sum, sum);
  await assertDigest(store, region, "deployment");
});

test("a change that is rolled back leaves the digest as it was", async () => {
  const { store } = target;
  const region = "back.test";
  await store.registerRegion(region);
  await store.put(region, "deployment", deployment("a"), author);
  const { sum } = await store.digest(region, "deployment");
  const client = await connectAlone(database);
  await client.query("BEGIN");
  await client.query("UPDATE krane.objects SET version = 50 WHERE region = $1", [region]);
  await client.query("DELETE FROM krane.objects WHERE region = $1", [region]);
  await client.query("ROLLBACK");
  await client.end();
  assert.equal((await store.digest(region, "deployment")).sum, sum);
});

test("rows that changed without the triggers, and digests that somebody changed, are found and corrected", async () => {
  const { store, other } = target;
  const region = "wrong.test";
  const faults = [
    "ALTER TABLE krane.objects DISABLE TRIGGER USER; DELETE FROM krane.objects WHERE region = 'wrong.test' AND id = 'a'",
    "ALTER TABLE krane.objects DISABLE TRIGGER USER; UPDATE krane.objects SET version = 77 WHERE region = 'wrong.test' AND id = 'b'",
    "ALTER TABLE krane.objects DISABLE TRIGGER USER; UPDATE krane.objects SET spec = '' WHERE region = 'wrong.test' AND id = 'b'",
    "ALTER TABLE krane.objects DISABLE TRIGGER USER; UPDATE krane.objects SET bucket = 1 WHERE region = 'wrong.test' AND id = 'c'",
    "UPDATE krane.digests SET sum = 5 WHERE region = 'wrong.test' AND kind = 'deployment'",
    "DELETE FROM krane.digests WHERE region = 'wrong.test' AND kind = 'deployment'",
  ];
  await store.registerRegion(region);
  for (const id of ["a", "b", "c", "d"]) await store.put(region, "deployment", deployment(id), author);
  await store.put(region, "sentinel", sentinel("s"), author);
  for (const fault of faults) {
    assert.deepEqual(await store.verifyDigests(region), []);
    for (const each of [...fault.split("; "), "ALTER TABLE krane.objects ENABLE TRIGGER USER"])
      await sql(each);
    assert.deepEqual(await store.verifyDigests(region), ["deployment"], fault);
    assert.deepEqual(await other.verifyDigests(region), [], fault);
    for (const kind of kindNames) await assertDigest(other, region, kind);
  }
});

test("much is verified in slices of the buckets, and what is wrong in any of them is corrected", async (t) => {
  const { store } = target;
  const region = "sliced.test";
  const pool = await createDatabase(database, deps);
  t.after(() => pool.close());
  const table = new DigestTable(pool, 3);
  await store.registerRegion(region);
  for (let index = 0; index < 40; index++)
    await store.put(region, "deployment", deployment(`d${index}`), author);
  const faults = [
    // Rows move to another slice, or to no bucket at all.
    "UPDATE krane.objects SET bucket = (bucket + 100) % 256 WHERE region = 'sliced.test'",
    "UPDATE krane.objects SET bucket = NULL, content_hash = NULL WHERE region = 'sliced.test' AND id < 'd2'",
    "UPDATE krane.objects SET bucket = 999 WHERE region = 'sliced.test' AND id > 'd2'",
    "UPDATE krane.digests SET bucket = 255 - bucket WHERE region = 'sliced.test'",
    "DELETE FROM krane.objects WHERE region = 'sliced.test' AND id > 'd3'",
  ];
  for (const fault of faults) {
    assert.deepEqual(await table.verify(region), []);
    for (const each of ["DISABLE", "", "ENABLE"])
      await sql(each === "" ? fault : `ALTER TABLE krane.objects ${each} TRIGGER USER`);
    assert.deepEqual(await table.verify(region), ["deployment"], fault);
    await assertDigest(store, region, "deployment");
  }
});

test("a table that is emptied leaves no digest behind", async (t) => {
  await sql("CREATE DATABASE emptied");
  const config = { ...database, database: "emptied" };
  const { store, close } = await startPostgresStore(config, deps);
  t.after(close);
  await store.registerRegion("a.test");
  await store.put("a.test", "deployment", deployment("a"), author);
  await sql("TRUNCATE krane.objects CASCADE", [], config);
  assert.equal((await store.digest("a.test", "deployment")).sum, 0n);
});

test("a long list is cut between buckets, and complete when the rest is asked for", async () => {
  const { store } = target;
  const region = "many.test";
  await store.registerRegion(region);
  await sql(
    `INSERT INTO krane.objects (region, kind, id, name, desired, format, spec, version)
     SELECT $1, 'deployment', n, n, 'running', 1, '', n FROM generate_series(1, 12000) n`,
    [region],
  );
  const { buckets: sums = [] } = await store.digest(region, "deployment");
  const ids = new Set<string>();
  let calls = 0;
  for (let left = allBuckets; left.length > 0; calls++) {
    const { buckets } = await store.contents(region, "deployment", left);
    assert.ok(buckets.length > 0);
    for (const { number, sum, rows } of buckets) {
      assert.deepEqual([sum, sumOf(rows)], [sums[number], sums[number]]);
      for (const { id } of rows) ids.add(id);
    }
    const done = new Set(buckets.map(({ number }) => number));
    left = left.filter((bucket) => !done.has(bucket));
  }
  assert.deepEqual([ids.size, calls], [12_000, 2]);
  // One bucket alone may have more than fits.
  await sql("DROP TRIGGER objects_hash_changed ON krane.objects");
  await sql("UPDATE krane.objects SET bucket = $2 WHERE region = $1", [region, bucketOf("1")]);
  const one = await store.contents(region, "deployment", allBuckets.slice(bucketOf("1")));
  assert.deepEqual(
    one.buckets.map(({ number, rows }) => [number, rows.length]),
    [[bucketOf("1"), 12_000]],
  );
});
