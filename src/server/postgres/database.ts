// The store's access to PostgreSQL: a small pool of connections with limits, and two ways
// to work. A read may be retried after any failure. A transaction may be retried until its
// COMMIT was sent: from then on its outcome is unknown, and the caller gets `unavailable`
// rather than a change being made twice.
import type { ClientBase, ClientConfig, Pool, PoolClient } from "pg";
import { type Clock, sleep } from "../../concurrency/clock.ts";
import { type Random, uniform } from "../../concurrency/random.ts";
import type { Log } from "../../telemetry/log.ts";
import { StoreError } from "../store.ts";
import { DatabaseFailure } from "./database-error.ts";

export interface DatabaseDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
}

/** One connection while it is checked out. */
export interface Session {
  query<R extends object>(sql: string, values?: readonly unknown[]): Promise<readonly R[]>;
}

const connectionsMax = 10;
const attemptsMax = 3;
const retryWaitMs = 100;
const connectTimeoutMs = 3_000;
/** Longer than the database's own limit, for a database that does not respond at all. */
const answerTimeoutMs = 12_000;

// A server that was paused in the middle of a transaction holds the counter of a region:
// the database ends such a transaction. A role may have synchronous_commit off, which would
// lose acknowledged changes.
const sessionSetup = `
  SELECT set_config('search_path', 'krane', false),
         set_config('application_name', 'krane server', false),
         set_config('default_transaction_isolation', 'read committed', false),
         set_config('statement_timeout', '10000', false),
         set_config('lock_timeout', '5000', false),
         set_config('idle_in_transaction_session_timeout', '15000', false),
         CASE WHEN current_setting('synchronous_commit') = 'off'
              THEN set_config('synchronous_commit', 'on', false) END`;

export class Database {
  private readonly pool: Pool;
  private readonly deps: DatabaseDeps;

  constructor(pool: Pool, deps: DatabaseDeps) {
    this.pool = pool;
    this.deps = deps;
  }

  /** One statement, in one snapshot. */
  async read<R extends object>(sql: string, values: readonly unknown[]): Promise<readonly R[]> {
    return this.retrying((session) => session.query<R>(sql, values));
  }

  /** All of the work or none of it. The work may run more than once. */
  async transact<T>(work: (session: Session) => Promise<T>): Promise<T> {
    return this.retrying(async (session, committing) => {
      await session.query("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE");
      const result = await work(session);
      committing();
      await session.query("COMMIT");
      return result;
    });
  }

  async close(): Promise<void> {
    await this.pool.end();
  }

  private async retrying<T>(work: (session: Session, committing: () => void) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      let isCommitting = false;
      const committing = () => {
        isCommitting = true;
      };
      try {
        return await this.withSession((session) => work(session, committing));
      } catch (error) {
        if (!(error instanceof DatabaseFailure) || error.code === "refused") throw error;
        const isOpen = isCommitting && error.code === "away";
        if (isOpen || attempt === attemptsMax) throw unavailable(error);
        this.deps.log.warn("the database failed; retrying", { attempt, error });
      }
      const waitMs = uniform(this.deps.random, retryWaitMs / 2, retryWaitMs) * 2 ** attempt;
      await sleep(this.deps.clock, waitMs, new AbortController().signal);
    }
  }

  private async withSession<T>(work: (session: Session) => Promise<T>): Promise<T> {
    const client = await this.pool.connect().catch((error: unknown) => {
      // Whatever the reason, nothing has been done yet, and a retry may succeed.
      throw new DatabaseFailure(error, "away");
    });
    try {
      const result = await work(sessionOf(client));
      client.release();
      return result;
    } catch (error) {
      // A connection in an unknown state is closed, which also rolls back what it was doing.
      const isUsable = !(error instanceof DatabaseFailure && error.code === "away");
      client.release(!(isUsable && (await rolledBack(client))));
      throw error;
    }
  }
}

/** Opens no connection yet. `pg` is loaded here, because only the control plane needs it. */
export async function createDatabase(config: ClientConfig, deps: DatabaseDeps): Promise<Database> {
  const { Pool: PoolOfClients } = await import("pg");
  const pool = new PoolOfClients({
    ...config,
    max: connectionsMax,
    connectionTimeoutMillis: connectTimeoutMs,
    query_timeout: answerTimeoutMs,
    keepAlive: true,
    idleTimeoutMillis: 60_000,
    maxLifetimeSeconds: 1_800,
    // Its type says it returns nothing, but the pool awaits what it returns.
    onConnect: setUpSession as (client: ClientBase) => void,
  });
  // A connection that breaks while in use fails its query; without a listener it would also end the process.
  pool.on("connect", (client) => void client.on("error", () => undefined));
  // A connection that breaks while idle is replaced by the next one.
  pool.on("error", (error) => deps.log.warn("an idle connection to the database was lost", { error }));
  return new Database(pool, deps);
}

/** A dedicated connection, for work that cannot use a pool: listening, migrating, locking. */
export async function connectAlone(
  config: ClientConfig,
  applicationName = "krane server",
  // Zero for work whose duration grows with the data.
  queryTimeoutMs = answerTimeoutMs,
): Promise<ClientBase & { end(): Promise<void> }> {
  const { Client } = await import("pg");
  const client = new Client({
    ...config,
    application_name: applicationName,
    connectionTimeoutMillis: connectTimeoutMs,
    query_timeout: queryTimeoutMs,
    keepAlive: true,
  });
  // Without a listener a lost connection would end the process.
  client.on("error", () => undefined);
  await client.connect();
  return client;
}

async function setUpSession(client: ClientBase): Promise<void> {
  await client.query(sessionSetup);
}

function sessionOf(client: PoolClient): Session {
  return {
    async query<R extends object>(sql: string, values: readonly unknown[] = []) {
      checkText(values);
      try {
        return (await client.query<R>(sql, [...values])).rows;
      } catch (error) {
        throw new DatabaseFailure(error);
      }
    },
  };
}

/** PostgreSQL cannot store NUL characters. They can arrive in names chosen by a client. */
function checkText(values: readonly unknown[]): void {
  if (values.flat().some((value) => typeof value === "string" && value.includes("\0"))) {
    throw new StoreError("incomplete", "a name or an id contains a NUL character");
  }
}

async function rolledBack(client: PoolClient): Promise<boolean> {
  try {
    await client.query("ROLLBACK");
    return true;
  } catch {
    return false;
  }
}

function unavailable(cause: DatabaseFailure): StoreError {
  return new StoreError("unavailable", "the database is unavailable", { cause });
}
