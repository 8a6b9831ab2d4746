// Runs a PostgreSQL in the data folder, reached by a socket that only its owner can open.
//
// - It outlives a server that is killed. The next server on the folder finds it by its PID
//   file and keeps using it.
// - A server owns the folder as long as it holds an advisory lock in that database, on a
//   separate connection. The lock goes away with the connection, however the server ends.
// - The first initialisation happens under another name and is then renamed: a folder with
//   the right name is always complete.
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chown, mkdtemp, open, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { ClientBase, ClientConfig } from "pg";
import { type Clock, sleep } from "../../concurrency/clock.ts";
import type { Log } from "../../telemetry/log.ts";
import { connectAlone } from "../postgres/database.ts";
import { sqlState } from "../postgres/database-error.ts";
import { copyPrograms, linkLibraries, type PostgresBinaries } from "./binaries.ts";
import {
  type Account,
  checkReachable,
  findAccount,
  findClosedFolder,
  homeName,
  newHomePrefix,
  prepareDataFolder,
} from "./data-folder.ts";
import { EmbeddedError } from "./embedded-error.ts";

export interface EmbeddedPostgresOptions {
  readonly dataDir: string;
  readonly binaries: PostgresBinaries;
  /** Of this process; undefined on platforms without user ids. */
  readonly uid: number | undefined;
}

export interface EmbeddedPostgresDeps {
  readonly clock: Clock;
  readonly log: Log;
}

export interface EmbeddedPostgres {
  /** How to connect to it. */
  readonly config: ClientConfig;
  readonly pid: number;
  /** Whether it was already running. */
  readonly isAdopted: boolean;
  /** Rejects when it ends before it was stopped. */
  readonly failed: Promise<never>;
  /** Shuts it down cleanly and waits until it is gone. */
  stop(): Promise<void>;
}

const user = "krane";
const database = "postgres";
const port = 5432;
/** Any number that never changes between versions of krane. */
const ownerLock = 4_738_105_222;
const startTimeoutMs = 60_000;
const ownerTimeoutMs = 3_000;
const stopTimeoutMs = 20_000;
const leftoverTimeoutMs = 5_000;
const pollEveryMs = 25;
/** A socket path is limited to about a hundred bytes. */
const socketPathBytesMax = 100;
const logTailChars = 600;

export async function startEmbeddedPostgres(
  options: EmbeddedPostgresOptions,
  deps: EmbeddedPostgresDeps,
  signal: AbortSignal,
): Promise<EmbeddedPostgres> {
  const dataDir = resolve(options.dataDir);
  const account = await findAccount(options.uid);
  await prepareDataFolder(dataDir, account);
  await checkReachable(dataDir, account);
  const binaries = await reachablePrograms(options.binaries, dataDir, account);
  const instance = new Instance(dataDir, account, binaries, deps);
  await instance.initialise(signal);
  return instance.start(signal);
}

async function reachablePrograms(
  binaries: PostgresBinaries,
  dataDir: string,
  account: Account | undefined,
): Promise<PostgresBinaries> {
  const closed = await findClosedFolder(binaries.postgres, account);
  if (closed !== undefined && binaries.packaged !== undefined)
    return copyPrograms(binaries.packaged, dataDir);
  await checkReachable(binaries.postgres, account);
  return binaries;
}

type Connection = ClientBase & { end(): Promise<void> };

class Instance {
  private readonly home: string;
  private readonly data: string;
  private readonly dataDir: string;
  private readonly account: Account | undefined;
  private readonly binaries: PostgresBinaries;
  private readonly deps: EmbeddedPostgresDeps;

  constructor(
    dataDir: string,
    account: Account | undefined,
    binaries: PostgresBinaries,
    deps: EmbeddedPostgresDeps,
  ) {
    this.dataDir = dataDir;
    this.home = join(dataDir, homeName);
    this.data = join(this.home, "data");
    this.account = account;
    this.binaries = binaries;
    this.deps = deps;
  }

  async initialise(signal: AbortSignal): Promise<void> {
    if (await exists(this.home)) return;
    const fresh = await mkdtemp(join(this.dataDir, newHomePrefix));
    try {
      const passwordFile = join(fresh, "password");
      await writeFile(passwordFile, `${randomBytes(24).toString("hex")}\n`, { mode: 0o600 });
      await this.own(fresh, passwordFile);
      const locale = ["--encoding=UTF8", "--locale=C"];
      const access = ["--auth=scram-sha-256", `--username=${user}`, `--pwfile=${passwordFile}`];
      const args = [`--pgdata=${join(fresh, "data")}`, ...access, ...locale, "--no-instructions"];
      const { code, output } = await this.run(this.binaries.initdb, args, fresh, signal);
      if (code !== 0)
        throw this.failure(`initdb failed with exit code ${code}: ${output.slice(-logTailChars)}`);
      await rename(fresh, this.home).catch(async (error: unknown) => {
        // Another server was faster; the lock decides which of the two continues.
        if (!(await exists(this.home))) throw error;
      });
    } finally {
      await rm(fresh, { recursive: true, force: true });
    }
  }

  async start(signal: AbortSignal): Promise<EmbeddedPostgres> {
    const password = (await readFile(join(this.home, "password"), "utf8")).trim();
    const configOf = ({ socketFolder: host, port: socketPort }: PostmasterFile): ClientConfig => ({
      host,
      port: socketPort,
      user,
      password,
      database,
    });
    const found = await this.reach(configOf, undefined, signal);
    const reached = found ?? (await this.launchPatiently(configOf, signal));
    await this.takeOwnership(reached.owner, signal);
    await this.removeLeftovers();
    const { owner, file } = reached;
    let isStopping = false;
    const failed = new Promise<never>((_, reject) => {
      owner.once("end", () => {
        if (!isStopping) reject(this.failure("it ended unexpectedly"));
      });
    });
    failed.catch(() => undefined);
    return {
      config: configOf(file),
      pid: file.pid,
      isAdopted: found !== undefined,
      failed,
      stop: async () => {
        isStopping = true;
        await owner.end().catch(() => undefined);
        await this.stop(file.pid);
      },
    };
  }

  /** A connection to a database that is running or starting; undefined when there is no such database. */
  private async reach(
    configOf: (file: PostmasterFile) => ClientConfig,
    child: { readonly ended: boolean } | undefined,
    signal: AbortSignal,
  ): Promise<{ owner: Connection; file: PostmasterFile } | undefined> {
    const deadlineMs = this.deps.clock.nowMs() + startTimeoutMs;
    for (;;) {
      const file = await readPostmasterFile(this.data);
      try {
        if (file !== undefined)
          return { owner: await connectAlone(configOf(file), "krane server: owner"), file };
      } catch (error) {
        const code = sqlState(error);
        // 57P03: it is starting, recovering or stopping. Any other response means that it is up.
        if (code !== undefined && code !== "57P03")
          throw this.failure(`it rejected the connection: ${String(error)}`, error);
        if (code === undefined && child === undefined) return undefined;
      }
      if (file === undefined && child === undefined) return undefined;
      if (child?.ended) return undefined;
      if (this.deps.clock.nowMs() > deadlineMs) throw this.failure("it does not respond");
      await sleep(this.deps.clock, pollEveryMs, signal);
    }
  }

  /** A database that was killed, or is stopping, keeps its shared memory for a moment. */
  private async launchPatiently(
    configOf: (file: PostmasterFile) => ClientConfig,
    signal: AbortSignal,
  ): Promise<{ owner: Connection; file: PostmasterFile }> {
    const deadlineMs = this.deps.clock.nowMs() + leftoverTimeoutMs;
    for (;;) {
      try {
        return await this.launch(configOf, signal);
      } catch (error) {
        if (signal.aborted || this.deps.clock.nowMs() > deadlineMs) throw error;
      }
      await sleep(this.deps.clock, 10 * pollEveryMs, signal);
      const found = await this.reach(configOf, undefined, signal);
      if (found !== undefined) return found;
    }
  }

  private async launch(
    configOf: (file: PostmasterFile) => ClientConfig,
    signal: AbortSignal,
  ): Promise<{ owner: Connection; file: PostmasterFile }> {
    const log = await open(join(this.home, "log"), "w", 0o600);
    const environment = await this.environment();
    const settings = ["listen_addresses=", "max_connections=50", "log_checkpoints=off", "cluster_name=krane"];
    const args = ["-D", this.data, "-k", await this.socketFolder(), "-p", `${port}`];
    // In its own process group: Ctrl-C in a terminal goes to the whole group, and the database
    // has to outlive the server's last writes.
    const child = spawn(this.binaries.postgres, [...args, ...settings.flatMap((each) => ["-c", each])], {
      ...this.account,
      cwd: this.home,
      env: environment,
      detached: true,
      stdio: ["ignore", "ignore", log.fd],
    });
    const state = { ended: false };
    child.on("error", () => {
      state.ended = true;
    });
    child.on("exit", () => {
      state.ended = true;
    });
    child.unref();
    await log.close();
    try {
      const reached = await this.reach(configOf, state, signal);
      if (reached !== undefined) return reached;
    } catch (error) {
      child.kill("SIGINT");
      throw error;
    }
    const tail = (await readFile(join(this.home, "log"), "utf8").catch(() => "")).slice(-logTailChars);
    throw this.failure(`it did not start: ${tail.trim() || "its log is empty"}`);
  }

  private async takeOwnership(owner: Connection, signal: AbortSignal): Promise<void> {
    // A server that was just killed may still hold the lock for a moment.
    const deadlineMs = this.deps.clock.nowMs() + ownerTimeoutMs;
    try {
      for (;;) {
        const { rows } = await owner.query<{ mine: boolean }>("SELECT pg_try_advisory_lock($1) AS mine", [
          ownerLock,
        ]);
        if (rows[0]?.mine === true) return;
        if (this.deps.clock.nowMs() > deadlineMs) break;
        await sleep(this.deps.clock, 4 * pollEveryMs, signal);
      }
      const message = `--data-dir: another krane server is using ${this.dataDir}; stop it or choose another folder`;
      throw new EmbeddedError("data_dir_in_use", message);
    } catch (error) {
      await owner.end().catch(() => undefined);
      throw error;
    }
  }

  /** Left by servers that were killed during the first initialisation. */
  private async removeLeftovers(): Promise<void> {
    for (const name of await readdir(this.dataDir)) {
      if (name.startsWith(newHomePrefix))
        await rm(join(this.dataDir, name), { recursive: true, force: true });
    }
  }

  private async stop(pid: number): Promise<void> {
    const { clock, log } = this.deps;
    const { signal } = new AbortController();
    const deadlineMs = clock.nowMs() + stopTimeoutMs;
    let isStopping = false;
    // The PID file of a crashed database stays behind, hence both checks.
    while (kill(pid, isStopping ? 0 : "SIGINT") && (await readPostmasterFile(this.data))?.pid === pid) {
      isStopping = true;
      if (clock.nowMs() > deadlineMs) {
        // Acknowledged writes are on disk; the next start recovers them.
        log.warn("the database did not stop in time and is being killed");
        kill(pid, "SIGQUIT");
        return;
      }
      await sleep(clock, pollEveryMs, signal);
    }
  }

  private async environment(): Promise<Readonly<Record<string, string>>> {
    const libraries = join(this.home, "lib");
    return { LC_ALL: "C", TZ: "UTC", ...(await linkLibraries(this.binaries, libraries)) };
  }

  private async run(
    program: string,
    args: readonly string[],
    folder: string,
    signal: AbortSignal,
  ): Promise<{ code: number | null; output: string }> {
    const env = { LC_ALL: "C", TZ: "UTC", ...(await linkLibraries(this.binaries, join(folder, "lib"))) };
    return new Promise((resolveRun, reject) => {
      const child = spawn(program, args, {
        ...this.account,
        cwd: folder,
        env,
        signal,
        stdio: ["ignore", "pipe", "pipe"],
      });
      let output = "";
      const add = (chunk: Buffer) => {
        output = `${output}${chunk.toString()}`.slice(-4 * logTailChars);
      };
      child.stdout.on("data", add);
      child.stderr.on("data", add);
      child.on("error", (error) =>
        reject(signal.aborted ? signal.reason : this.failure(error.message, error)),
      );
      child.on("close", (code) => resolveRun({ code, output }));
    });
  }

  private async socketFolder(): Promise<string> {
    if (Buffer.byteLength(join(this.home, `.s.PGSQL.${port}`)) <= socketPathBytesMax) return this.home;
    const folder = await mkdtemp(join(tmpdir(), "krane-pg-"));
    await this.own(folder);
    return folder;
  }

  private async own(...paths: readonly string[]): Promise<void> {
    const { account } = this;
    if (account !== undefined) for (const path of paths) await chown(path, account.uid, account.gid);
  }

  private failure(reason: string, cause?: unknown): EmbeddedError {
    return new EmbeddedError("database_failed", `the PostgreSQL in ${this.home}: ${reason}`, { cause });
  }
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

/** False when the process does not exist. Signal 0 only checks. */
function kill(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  }
}

// Reads the PID file that a running PostgreSQL leaves in its data folder: its process and
// where it listens. The file stays behind after a crash, so it proves nothing.

interface PostmasterFile {
  readonly pid: number;
  readonly port: number;
  readonly socketFolder: string;
}

async function readPostmasterFile(data: string): Promise<PostmasterFile | undefined> {
  const text = await readFile(join(data, "postmaster.pid"), "utf8").catch(() => "");
  const [pid = "", , , port = "", socketFolder = ""] = text.split("\n").map((line) => line.trim());
  // It is written line by line while the database starts.
  if (!/^\d+$/.test(pid) || !/^\d+$/.test(port) || socketFolder === "") return undefined;
  return { pid: Number(pid), port: Number(port), socketFolder };
}
