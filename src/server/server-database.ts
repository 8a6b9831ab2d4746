// Opens the server's database: an existing PostgreSQL, or an embedded one that the server runs itself.
import type { ClientConfig } from "pg";
import { type Clock, sleep } from "../concurrency/clock.ts";
import type { Random } from "../concurrency/random.ts";
import { createSecretSource } from "../config/secret-source.ts";
import type { Incarnation } from "../control-plane/incarnation.ts";
import type { Log } from "../telemetry/log.ts";
import type { DatabaseChoice } from "./config/server-config.ts";
import { serverSettings } from "./config/server-settings.ts";
import { failureKind } from "./postgres/database-error.ts";
import { type PostgresStore, startPostgresStore } from "./postgres/postgres-store.ts";
import { ServerError } from "./server-error.ts";

export interface ServerDatabaseDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Of this process; PostgreSQL does not run as root. */
  readonly uid: number | undefined;
  readTextFile(path: string, signal: AbortSignal): Promise<string>;
  /** Shows progress to a person. */
  progress(line: string): void;
}

export interface ServerDatabase {
  readonly store: PostgresStore;
  /** Rejects when the embedded database ends. */
  readonly failed: Promise<never>;
  close(): Promise<void>;
}

/** A database that was started at the same time may need a while. */
const patienceMs = 60_000;
const retryEveryMs = 1_000;

export async function openServerDatabase(
  choice: DatabaseChoice,
  deps: ServerDatabaseDeps,
  signal: AbortSignal,
): Promise<ServerDatabase> {
  if (choice.kind === "url") {
    const source = createSecretSource(
      choice.url,
      { readTextFile: deps.readTextFile, nowMs: () => deps.clock.nowMs() },
      serverSettings.databaseUrl.kind,
    );
    const connectionString = (await source.current(signal)).reveal();
    deps.progress("connecting to the database");
    const { store, close } = await startPatiently({ connectionString }, deps, signal);
    return { store, close, failed: new Promise(() => undefined) };
  }
  return openEmbedded(choice, deps, signal);
}

// Loaded on demand: an agent, or a server with an external database, does not need it.
async function openEmbedded(
  { dataDir, postgresBin }: Extract<DatabaseChoice, { kind: "embedded" }>,
  deps: ServerDatabaseDeps,
  signal: AbortSignal,
): Promise<ServerDatabase> {
  const { findPostgresBinaries } = await import("./embedded/binaries.ts");
  const { startEmbeddedPostgres } = await import("./embedded/embedded-postgres.ts");
  deps.progress(`starting PostgreSQL in ${dataDir}`);
  const binaries = await findPostgresBinaries(postgresBin);
  const postgres = await startEmbeddedPostgres({ dataDir, binaries, uid: deps.uid }, deps, signal);
  if (postgres.isAdopted) deps.progress("found it already running, left by a server that was killed");
  try {
    const { store, close } = await startPatiently(postgres.config, deps, signal);
    return {
      store,
      failed: postgres.failed,
      async close() {
        await close();
        await postgres.stop();
      },
    };
  } catch (error) {
    await postgres.stop();
    throw error;
  }
}

async function startPatiently(
  config: ClientConfig,
  deps: ServerDatabaseDeps,
  signal: AbortSignal,
): Promise<{ readonly store: PostgresStore; close(): Promise<void> }> {
  const deadlineMs = deps.clock.nowMs() + patienceMs;
  for (let attempt = 1; ; attempt++) {
    try {
      return await startPostgresStore(config, deps, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (failureKind(error) !== "away" || deps.clock.nowMs() > deadlineMs) {
        const reason = error instanceof Error ? error.message : String(error);
        throw new ServerError(
          "database_unusable",
          `server.database_url: the database cannot be used: ${reason}`,
          {
            cause: error,
          },
        );
      }
      if (attempt === 1) deps.progress("the database is not responding yet; waiting for it");
    }
    await sleep(deps.clock, retryEveryMs, signal);
  }
}

export interface ReplacedIncarnation {
  readonly replaced: Incarnation;
  readonly started: Incarnation;
}

/** See docs/adr/0013-incarnations.md. Running servers on the same database notice it within seconds. */
export async function startNewIncarnation(
  choice: DatabaseChoice,
  deps: ServerDatabaseDeps,
  signal: AbortSignal,
): Promise<ReplacedIncarnation> {
  const { store, close } = await openServerDatabase(choice, deps, signal);
  try {
    const replaced = await store.incarnation();
    if (replaced === undefined || replaced.isReplica)
      throw new ServerError("database_unusable", "the database is a replica; name its primary");
    const { id, ordinal } = replaced;
    const started = await store.startIncarnation({ replaces: id, above: ordinal, reason: "requested" });
    // Another server may have been faster, which is as good.
    return { replaced, started: started ?? replaced };
  } finally {
    await close();
  }
}
