// Creates and migrates the tables, step by step (see migration-steps.ts). Each
// step runs once, in one transaction with the note that it ran, and under a lock on the
// whole database, so that servers which start at the same time wait for one another.
//
// Older servers keep running meanwhile. A step that needs exclusive table locks takes all
// of them first, gives up at once if one is busy, and starts again: otherwise it would
// block the older servers or deadlock with them. Work that takes long with much data is
// done in batches that need no exclusive lock, and indexes of large tables are built
// without one.
//
// A database that is ahead of this list belongs to a newer server. Steps are additive, so
// an older server beside it keeps working; it leaves what it does not know alone.
import type { ClientBase } from "pg";
import { sqlState } from "./database-error.ts";
import { type LateIndex, lateIndexes, type Migration, steps } from "./migration-steps.ts";

/** Any number that never changes between versions of krane. */
export const migrationLock = 4_738_105_221;

const quietWaitMs = 10_000;
const lockPollMs = 50;
/** Shorter than the second after which PostgreSQL breaks a deadlock by itself, which could hit an older server. */
const tableWaitMs = 500;
const attemptsMax = 120;
const lockTimeoutCode = "55P03";
/** Another transaction was in the way: a deadlock, or a lock timeout. */
const busyCodes: readonly unknown[] = ["40P01", lockTimeoutCode];

export interface MigrationOptions {
  /** The last step to run. Default: all steps. */
  readonly stepsMax?: number;
  /** How often it reports that it is waiting. */
  readonly quietMs?: number;
  /** Called repeatedly while another server holds the lock. */
  onWaiting?(): void;
}

/** Brings the tables up to date; resolves with the number of steps it ran. */
export async function migrate(client: ClientBase, options: MigrationOptions = {}): Promise<number> {
  const { stepsMax = steps.length, quietMs = quietWaitMs, onWaiting } = options;
  // Overrides defaults that may have been set on the role to protect it from people.
  await client.query("SET statement_timeout TO 0");
  await client.query("SET default_transaction_read_only TO off");
  await client.query("SET default_transaction_isolation TO 'read committed'");
  await lockMigrations(client, quietMs, onWaiting);
  try {
    await client.query(`SET lock_timeout TO ${tableWaitMs}`);
    // Checked first: CREATE SCHEMA needs a privilege that a careful administrator does not grant.
    const { rows: schemas } = await client.query("SELECT 1 FROM pg_namespace WHERE nspname = 'krane'");
    if (schemas.length === 0) await client.query("CREATE SCHEMA krane");
    await client.query("SET search_path TO krane");
    await client.query(
      "CREATE TABLE IF NOT EXISTS migrations (step integer PRIMARY KEY, ran_at timestamptz NOT NULL DEFAULT now())",
    );
    const { rows } = await client.query<{ done: number }>(
      "SELECT coalesce(max(step), 0)::integer AS done FROM migrations",
    );
    const done = rows[0]?.done ?? 0;
    for (const [index, step] of steps.slice(0, stepsMax).entries()) {
      const number = index + 1;
      if (number > done) await runStep(client, number, step);
      for (const late of lateIndexes)
        if (late.afterStep === number && (late.untilStep ?? Number.POSITIVE_INFINITY) > done)
          await buildIndex(client, late);
    }
    return Math.max(0, stepsMax - done);
  } finally {
    await client.query("SELECT pg_advisory_unlock($1)", [migrationLock]);
  }
}

/**
 * Whether the tables have every step of this server. A replica gets them from its primary, which a server of this version
 * has to migrate.
 */
export async function isMigrated(client: Pick<ClientBase, "query">): Promise<boolean> {
  const { rows: found } = await client.query(
    "SELECT 1 FROM pg_tables WHERE schemaname = 'krane' AND tablename = 'migrations'",
  );
  if (found.length === 0) return false;
  const { rows } = await client.query("SELECT 1 FROM krane.migrations WHERE step >= $1", [steps.length]);
  return rows.length > 0;
}

/**
 * Waits without a limit: migrating much data takes an unpredictable time, and the lock of a killed server is freed at
 * once. A caller that gives up closes the connection. It polls: a statement that waits for the lock would
 * hold a snapshot, which the server with the lock waits for when it builds an index.
 */
async function lockMigrations(client: ClientBase, quietMs: number, onWaiting?: () => void): Promise<void> {
  for (let waitedMs = lockPollMs; ; waitedMs += lockPollMs) {
    const { rows } = await client.query<{ locked: boolean }>("SELECT pg_try_advisory_lock($1) AS locked", [
      migrationLock,
    ]);
    if (rows[0]?.locked) return;
    if (waitedMs % quietMs < lockPollMs) onWaiting?.();
    await client.query(`SELECT pg_sleep(${lockPollMs / 1_000})`);
  }
}

/** Builds an index beside servers that write, without blocking them; waits for transactions that began earlier. */
async function buildIndex(client: ClientBase, { name, definition }: LateIndex): Promise<void> {
  await unlessBusy(async () => {
    const { rows } = await client.query<{ isValid: boolean }>(
      `SELECT i.indisvalid AS "isValid" FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
       WHERE c.relnamespace = 'krane'::regnamespace AND c.relname = $1`,
      [name],
    );
    if (rows[0]?.isValid) return;
    await client.query("SET lock_timeout TO 0");
    try {
      // What an interrupted build left is of no use, and costs every write.
      if (rows.length > 0) await client.query(`DROP INDEX CONCURRENTLY ${name}`);
      await client.query(`CREATE INDEX CONCURRENTLY ${name} ${definition}`);
    } finally {
      await client.query(`SET lock_timeout TO ${tableWaitMs}`);
    }
  });
}

async function runStep(client: ClientBase, number: number, step: Migration): Promise<void> {
  const note = "INSERT INTO migrations (step) VALUES ($1)";
  if (typeof step !== "string") {
    for (let last: string | null = "0"; last !== null; ) {
      last = await unlessBusy(() => runBit(client, step.eachBehind, last));
    }
    await client.query(note, [number]);
    return;
  }
  await unlessBusy(async () => {
    await client.query("BEGIN");
    try {
      await client.query(step);
      await client.query(note, [number]);
      await client.query("COMMIT");
    } catch (error) {
      await client.query("ROLLBACK");
      throw error;
    }
  });
}

async function runBit(client: ClientBase, sql: string, behind: string | null): Promise<string | null> {
  const { rows } = await client.query<{ last: string | null }>(sql, [behind]);
  return rows[0]?.last ?? null;
}

/** Retries until no other transaction is in the way. Transactions that waited for us meanwhile go first. */
async function unlessBusy<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (!busyCodes.includes(sqlState(error)) || attempt === attemptsMax) throw error;
    }
  }
}
