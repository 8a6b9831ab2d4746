// A PostgreSQL of the system in folders of its own, with the tools that operators use: to dump and restore, to copy, to
// promote a replica.
import { execFileSync, spawn } from "node:child_process";
import {
  appendFileSync,
  chownSync,
  cpSync,
  existsSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { TestContext } from "node:test";
import { type Account, findAccount } from "../../src/server/embedded/data-folder.ts";
import { connectAlone } from "../../src/server/postgres/database.ts";
import { eventually } from "./eventually.ts";

const tools = ["postgres", "initdb", "pg_ctl", "pg_dump", "pg_restore", "pg_basebackup"];

/** The folder with PostgreSQL's programs; undefined if this machine has not all of them. */
export function findPostgresTools(): string | undefined {
  const folders = (process.env["PATH"] ?? "").split(":");
  const found = folders.find((folder) => existsSync(join(folder, "postgres")));
  const bin = found && dirname(realpathSync(join(found, "postgres")));
  return bin !== undefined && tools.every((tool) => existsSync(join(bin, tool))) ? bin : undefined;
}

export class PostgresCluster {
  readonly folder: string;
  private readonly bin: string;
  private readonly account: Account | undefined;
  private stopServer: (() => Promise<void>) | undefined;

  private constructor(bin: string, account: Account | undefined) {
    this.bin = bin;
    this.account = account;
    this.folder = mkdtempSync(join(tmpdir(), "krane-pg-"));
    if (account !== undefined) chownSync(this.folder, account.uid, account.gid);
  }

  static async create(t: TestContext, bin: string): Promise<PostgresCluster> {
    const cluster = new PostgresCluster(bin, await findAccount(process.getuid?.()));
    t.after(async () => {
      await cluster.stop();
      rmSync(cluster.folder, { recursive: true });
    });
    return cluster;
  }

  /** Creates and starts an empty one. */
  static async start(t: TestContext, bin: string): Promise<PostgresCluster> {
    const cluster = await PostgresCluster.create(t, bin);
    cluster.run("initdb", [
      "-D",
      cluster.data,
      "-U",
      "krane",
      "--auth=trust",
      "--encoding=UTF8",
      "--locale=C",
    ]);
    await cluster.start();
    return cluster;
  }

  get data(): string {
    return join(this.folder, "data");
  }

  url(database = "postgres"): string {
    return `postgres://krane@localhost/${database}?host=${encodeURIComponent(this.folder)}`;
  }

  run(tool: string, args: readonly string[]): void {
    const stdio = ["ignore", "ignore", "pipe"] as const;
    execFileSync(join(this.bin, tool), [...args], { ...this.options(), stdio: [...stdio] });
  }

  async start(): Promise<void> {
    const settings = ["listen_addresses=", "fsync=off", "max_wal_senders=4"].flatMap((each) => ["-c", each]);
    const args = ["-D", this.data, "-k", this.folder, ...settings];
    const server = spawn(join(this.bin, "postgres"), args, { ...this.options(), stdio: "ignore" });
    const exited = new Promise((resolve) => server.once("exit", resolve));
    this.stopServer = async () => {
      server.kill("SIGINT");
      await exited;
    };
    await eventually("the database answers", () => this.sql("SELECT 1"));
  }

  async stop(): Promise<void> {
    await this.stopServer?.();
    this.stopServer = undefined;
  }

  async sql(statement: string): Promise<void> {
    const client = await connectAlone({ connectionString: this.url() });
    try {
      await client.query(statement);
    } finally {
      await client.end();
    }
  }

  /** A copy of the data folder, while the server is stopped. */
  copyData(from: string, to: string): void {
    rmSync(to, { recursive: true, force: true });
    cpSync(from, to, { recursive: true, preserveTimestamps: true });
    if (this.account !== undefined)
      execFileSync("chown", ["-R", `${this.account.uid}:${this.account.gid}`, to]);
  }

  /** A replica that has everything up to now and receives nothing more. */
  async copyAsReplica(t: TestContext): Promise<PostgresCluster> {
    const replica = await PostgresCluster.create(t, this.bin);
    this.backUpTo(replica);
    writeFileSync(join(replica.data, "standby.signal"), "");
    await replica.start();
    return replica;
  }

  /** Makes a physical copy of everything up to now the data folder of another cluster, which must not have one. */
  backUpTo(other: PostgresCluster): void {
    const from = ["-h", this.folder, "-U", "krane"];
    other.run("pg_basebackup", [...from, "-D", other.data, "-X", "stream", "-c", "fast"]);
  }

  /** Starts it as the end of a point-in-time recovery does: writable, on a new timeline. */
  async recover(): Promise<void> {
    writeFileSync(join(this.data, "recovery.signal"), "");
    const settings = ["restore_command = 'false'", "recovery_target = 'immediate'"];
    const all = [...settings, "recovery_target_action = 'promote'", ""];
    appendFileSync(join(this.data, "postgresql.auto.conf"), all.join("\n"));
    await this.start();
  }

  promote(): void {
    this.run("pg_ctl", ["promote", "-D", this.data, "-w"]);
  }

  private options() {
    return { ...this.account, cwd: this.folder, env: { LC_ALL: "C", PATH: "/usr/bin:/bin" } };
  }
}
