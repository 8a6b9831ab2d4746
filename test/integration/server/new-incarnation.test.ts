// krane server new-incarnation: the command for restores that a database cannot notice.
import assert from "node:assert/strict";
import { test } from "node:test";
import { main } from "../../../src/cli/main.ts";
import { eventually } from "../../support/eventually.ts";
import { FakeIo } from "../../support/fake-io.ts";
import { freePort } from "../../support/krane-process.ts";
import { findPostgresTools, PostgresCluster } from "../../support/postgres-cluster.ts";
import { startServer } from "../../support/running-server.ts";

const bin = findPostgresTools();
const skip = bin === undefined && "this machine has not all of PostgreSQL's tools";
const region = "local.dev";

test("krane server new-incarnation replaces the incarnation under running servers", { skip }, async (t) => {
  const postgres = await PostgresCluster.start(t, bin ?? "");
  const flags = {
    "database-url": postgres.url(),
    listen: `127.0.0.1:${await freePort()}`,
    "agent-tokens": `${region} token-of-the-test`,
  };
  const server = await startServer(flags);
  t.after(() => server.stop());
  const before = await server.store.incarnation();
  assert.ok(before);
  const io = new FakeIo();
  const argv = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, value]);
  assert.equal(await main(["server", "new-incarnation", ...argv], {}, io), 0, io.stderr.text);
  await eventually("the server has noticed", async () => {
    const now = await server.store.incarnation();
    assert.equal(now?.parent, before.id);
    assert.match(io.stdout.text, new RegExp(`^incarnation ${now?.ordinal} replaces ${before.ordinal};`));
  });
});

test("krane server new-incarnation refuses a replica", { skip }, async (t) => {
  const postgres = await PostgresCluster.start(t, bin ?? "");
  const server = await startServer({
    "database-url": postgres.url(),
    listen: `127.0.0.1:${await freePort()}`,
    "agent-tokens": `${region} token-of-the-test`,
  });
  t.after(() => server.stop());
  const replica = await postgres.copyAsReplica(t);
  const io = new FakeIo();
  const argv = ["--database-url", replica.url(), "--agent-tokens", `${region} token-of-the-test`];
  assert.notEqual(await main(["server", "new-incarnation", ...argv], {}, io), 0);
  assert.match(io.stderr.text, /the database is a replica; name its primary/);
});
