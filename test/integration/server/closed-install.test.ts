// PostgreSQL does not run as root, so root gives its database to another account. That account must not need to enter the
// folder of the install: a clone in a folder of `mktemp -d` is closed to it.
import assert from "node:assert/strict";
import { cp, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { createSystemClock } from "../../../src/concurrency/clock.ts";
import { findPostgresBinaries } from "../../../src/server/embedded/binaries.ts";
import { startEmbeddedPostgres } from "../../../src/server/embedded/embedded-postgres.ts";
import { connectAlone } from "../../../src/server/postgres/database.ts";
import { createQuietLog } from "../../support/quiet-log.ts";

const deps = { clock: createSystemClock(), log: createQuietLog() };
const { signal } = new AbortController();

test("root can run the database of an install that only root may enter, from one copy of its programs", {
  skip: process.getuid?.() !== 0 && "only root gives the database to another account",
}, async (t) => {
  const [closed, dataDir] = await Promise.all(
    ["krane-closed-", "krane-data-"].map((prefix) => mkdtemp(join(tmpdir(), prefix))),
  );
  assert.ok(closed !== undefined && dataDir !== undefined);
  t.after(() => Promise.all([closed, dataDir].map((folder) => rm(folder, { recursive: true }))));
  const found = await findPostgresBinaries(undefined);
  assert.ok(found.packaged !== undefined, "the npm package is not installed");
  await cp(join(found.packaged, ".."), join(closed, "package"), { recursive: true });
  const packaged = join(closed, "package", "native");
  const binaries = {
    ...found,
    packaged,
    postgres: join(packaged, "bin", "postgres"),
    initdb: join(packaged, "bin", "initdb"),
  };

  for (const turn of ["first", "second"]) {
    const postgres = await startEmbeddedPostgres({ dataDir, binaries, uid: 0 }, deps, signal);
    try {
      const connection = await connectAlone(postgres.config, "test");
      const { rows } = await connection.query("SELECT 1 AS one");
      await connection.end();
      assert.deepEqual(rows, [{ one: 1 }], turn);
    } finally {
      await postgres.stop();
    }
  }
  const copies = (await readdir(dataDir)).filter((name) => name.startsWith("postgres-programs"));
  assert.equal(copies.length, 1);
});
