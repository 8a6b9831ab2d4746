// The stores that the contract holds for, each opened once per test file.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { chownSync, existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ClientConfig } from "pg";
import { createSystemClock } from "../../src/concurrency/clock.ts";
import { createSystemRandom } from "../../src/concurrency/random.ts";
import { findPostgresBinaries } from "../../src/server/embedded/binaries.ts";
import { findAccount } from "../../src/server/embedded/data-folder.ts";
import { startEmbeddedPostgres } from "../../src/server/embedded/embedded-postgres.ts";
import { MemoryStore } from "../../src/server/memory-store.ts";
import { connectAlone } from "../../src/server/postgres/database.ts";
import { startPostgresStore } from "../../src/server/postgres/postgres-store.ts";
import type { Store } from "../../src/server/store.ts";
import { eventually } from "../support/eventually.ts";
import { createQuietLog } from "../support/quiet-log.ts";

export type WatchedStore = Store & { waitingCount(region: string): number };

export interface OpenTarget {
  readonly store: WatchedStore;
  /** Another store on the same data, as another process has; the same one where there is only one. */
  readonly other: WatchedStore;
  /** How to reach the database itself; undefined for memory. */
  readonly database: ClientConfig | undefined;
  close(): Promise<void>;
}

export interface StoreTarget {
  readonly name: string;
  /** A reason in one line when this machine cannot have it. */
  open(): Promise<OpenTarget | string>;
}

const deps = { clock: createSystemClock(), random: createSystemRandom(), log: createQuietLog() };
const { signal } = new AbortController();

export const memoryTarget: StoreTarget = {
  name: "memory",
  async open() {
    const store = new MemoryStore({ ordinal: 1n, id: "memory-1", parent: "", isReplica: false });
    return { store, other: store, database: undefined, close: async () => undefined };
  },
};

export const embeddedTarget: StoreTarget = {
  name: "embedded PostgreSQL",
  async open() {
    const dataDir = await mkdtemp(join(tmpdir(), "krane-store-"));
    const binaries = await findPostgresBinaries(undefined);
    const postgres = await startEmbeddedPostgres(
      { dataDir, binaries, uid: process.getuid?.() },
      deps,
      signal,
    );
    return openStores(postgres.config, async () => {
      await postgres.stop();
      await rm(dataDir, { recursive: true });
    });
  },
};

/** Defaults that a careless or another administrator may have chosen, each of which could break a promise. */
const oddSettings = [
  "default_transaction_isolation=serializable",
  "synchronous_commit=off",
  "bytea_output=escape",
  "timezone=Asia/Kathmandu",
  "datestyle=SQL,DMY",
  "default_transaction_read_only=on",
  "search_path=nowhere",
];

export const systemTarget: StoreTarget = {
  name: "PostgreSQL of the system, with odd settings",
  async open() {
    const bin = findSystemPostgres();
    if (bin === undefined) return "no postgres on the PATH of this machine";
    const folder = await mkdtemp(join(tmpdir(), "krane-system-pg-"));
    const account = await findAccount(process.getuid?.());
    if (account !== undefined) chownSync(folder, account.uid, account.gid);
    const passwordFile = join(folder, "password");
    await writeFile(passwordFile, "p w%/d\n");
    if (account !== undefined) chownSync(passwordFile, account.uid, account.gid);
    const data = join(folder, "data");
    const options = { ...account, cwd: folder, env: { LC_ALL: "C" }, stdio: "ignore" } as const;
    const access = ["-U", "someone", "--auth=scram-sha-256", `--pwfile=${passwordFile}`];
    execFileSync(join(bin, "initdb"), ["-D", data, ...access, "--encoding=UTF8", "--locale=C"], options);
    const settings = ["listen_addresses=", ...oddSettings].flatMap((each) => ["-c", each]);
    const server = spawn(join(bin, "postgres"), ["-D", data, "-k", folder, ...settings], options);
    const exited = new Promise((resolve) => server.once("exit", resolve));
    const config = { host: folder, user: "someone", password: "p w%/d", database: "postgres" };
    return openStores(config, async () => {
      server.kill("SIGINT");
      await exited;
      await rm(folder, { recursive: true });
    });
  },
};

export interface OpenDatabase extends OpenTarget {
  readonly database: ClientConfig;
  /** The same, as `krane server` takes it. */
  readonly url: string;
  sql(text: string, values?: readonly unknown[], config?: ClientConfig): Promise<unknown[]>;
}

/** The embedded PostgreSQL, for tests of what only a database does. */
export async function openDatabase(): Promise<OpenDatabase> {
  const opened = await embeddedTarget.open();
  const target = typeof opened === "string" ? assert.fail(opened) : opened;
  const { database = assert.fail("it has no database") } = target;
  const { host = "", user, password, port } = database;
  return {
    ...target,
    database,
    url: `postgres://${user}:${password}@${encodeURIComponent(host)}:${port}/postgres`,
    async sql(text, values = [], config = database) {
      const client = await connectAlone(config);
      try {
        return (await client.query(text, [...values])).rows;
      } finally {
        await client.end();
      }
    },
  };
}

function findSystemPostgres(): string | undefined {
  const folders = (process.env["PATH"] ?? "").split(":");
  return folders.find((folder) => existsSync(join(folder, "postgres")) && existsSync(join(folder, "initdb")));
}

async function openStores(database: ClientConfig, stop: () => Promise<void>): Promise<OpenTarget> {
  try {
    const first = await eventually("the database answers", () => startPostgresStore(database, deps));
    const second = await startPostgresStore(database, deps);
    return {
      store: first.store,
      other: second.store,
      database,
      async close() {
        await Promise.all([first.close(), second.close()]);
        await stop();
      },
    };
  } catch (error) {
    await stop();
    throw error;
  }
}
