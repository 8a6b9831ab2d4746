// The tables, as a list of steps that is only ever appended to. Each step runs once, in
// a transaction of its own together with the note that it ran, and under a lock of the
// whole database, so that servers which start at the same time wait for one another.
//
// A database that is ahead of this list belongs to a newer server. Steps are additive,
// so an older server beside it goes on working; it leaves what it does not know alone.
import type { ClientBase } from "pg";

/** Any number, as long as it is the same in every version of krane. */
const migrationLock = 4_738_105_221;

const steps: readonly string[] = [
  `
  CREATE TABLE regions (
    name       text PRIMARY KEY,
    counter    bigint NOT NULL DEFAULT 0,
    ordinal    bigint GENERATED ALWAYS AS IDENTITY
  );

  -- The spec is kept as protobuf, which carries fields through that this server does not
  -- know. "format" says how to read it; whoever does not know the number leaves the row alone.
  CREATE TABLE objects (
    region        text NOT NULL REFERENCES regions (name),
    kind          text NOT NULL,
    id            text NOT NULL,
    name          text NOT NULL,
    desired       text NOT NULL,
    format        smallint NOT NULL,
    spec          bytea NOT NULL,
    deployment_id text,
    version       bigint NOT NULL,
    PRIMARY KEY (region, kind, id),
    CONSTRAINT objects_name UNIQUE (region, kind, name)
  );
  -- Partial, because the columns of a full unique index count as key columns: every change
  -- of a row would then have to wait for the reports on it.
  CREATE UNIQUE INDEX objects_version ON objects (region, version) WHERE version > 0;
  CREATE INDEX objects_stream ON objects (region, kind, version);

  -- Apart from regions, whose rows are locked by every change of desired state.
  CREATE TABLE agents (
    region          text PRIMARY KEY REFERENCES regions (name),
    heartbeat_at_ms bigint,
    state           bytea,
    state_at_ms     bigint
  );

  CREATE TABLE reports (
    region  text NOT NULL,
    kind    text NOT NULL,
    id      text NOT NULL,
    at_ms   bigint NOT NULL,
    present boolean NOT NULL,
    outcome text NOT NULL,
    version bigint NOT NULL,
    body    bytea NOT NULL,
    PRIMARY KEY (region, kind, id),
    FOREIGN KEY (region, kind, id) REFERENCES objects (region, kind, id) ON DELETE CASCADE
  );

  CREATE TABLE instances (
    region   text NOT NULL,
    kind     text NOT NULL DEFAULT 'deployment',
    id       text NOT NULL,
    k8s_name text NOT NULL,
    position integer NOT NULL,
    address  text NOT NULL,
    body     bytea NOT NULL,
    PRIMARY KEY (region, id, k8s_name),
    FOREIGN KEY (region, kind, id) REFERENCES reports (region, kind, id) ON DELETE CASCADE
  );
  CREATE UNIQUE INDEX instances_address ON instances (region, address) WHERE address <> '';

  CREATE TABLE history (
    entry   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    region  text NOT NULL REFERENCES regions (name),
    at_ms   bigint NOT NULL,
    author  text NOT NULL,
    kind    text NOT NULL,
    id      text NOT NULL,
    version bigint NOT NULL,
    event   text NOT NULL,
    outcome text NOT NULL
  );
  CREATE INDEX history_region ON history (region, entry);
  CREATE INDEX history_object ON history (region, kind, id, entry);
  `,
];

/** How long a server waits for another one that is at work on the tables. */
const lockTimeoutMs = 60_000;

/** Brings the database to the newest tables; resolves with how many steps it took. */
export async function migrate(client: ClientBase): Promise<number> {
  await client.query(`SET lock_timeout TO ${lockTimeoutMs}`);
  // Defaults that a role may have been given to protect it from people.
  await client.query("SET default_transaction_read_only TO off");
  await client.query("SET default_transaction_isolation TO 'read committed'");
  await client.query("SELECT pg_advisory_lock($1)", [migrationLock]);
  try {
    // Asked for first: CREATE SCHEMA needs a right that a careful administrator does not give.
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
    for (const [index, sql] of steps.entries()) {
      if (index >= done) await runStep(client, index + 1, sql);
    }
    return Math.max(0, steps.length - done);
  } finally {
    await client.query("SELECT pg_advisory_unlock($1)", [migrationLock]);
  }
}

async function runStep(client: ClientBase, step: number, sql: string): Promise<void> {
  await client.query("BEGIN");
  try {
    await client.query(sql);
    await client.query("INSERT INTO migrations (step) VALUES ($1)", [step]);
    await client.query("COMMIT");
  } catch (error) {
    await client.query("ROLLBACK");
    throw error;
  }
}
