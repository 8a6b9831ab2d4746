// The store in PostgreSQL, for any number of server processes at a time.
//
// - A change first takes the next number from the row of its region, which keeps that
//   row locked until the commit. So the changes of a region happen one after the other,
//   and whoever sees a number sees every row up to it.
// - Rows and the counter are read in one statement, hence in one snapshot.
// - Each change announces its number with its commit; see change-feed.ts.
import type { ClientConfig } from "pg";
import { type Kind, kinds, type Spec } from "../kinds.ts";
import { checkIdentity, unknownRegion, unreadable } from "../row-rules.ts";
import {
  type AgentRecord,
  type AgentReport,
  type Author,
  type Changes,
  type DeploymentReport,
  type HistoryEntry,
  type HistoryQuery,
  type HistoryRetention,
  type Row,
  type SentinelReport,
  type Store,
  StoreError,
} from "../store.ts";
import { ChangeFeed, changeChannel } from "./change-feed.ts";
import { connectAlone, createDatabase, type Database, type DatabaseDeps, type Session } from "./database.ts";
import { HistoryTable } from "./history-table.ts";
import { migrate } from "./migrations.ts";
import {
  decodeRow,
  hasObject,
  type MaybeObjectRow,
  type ObjectRow,
  objectColumns,
  specFormat,
} from "./object-rows.ts";
import { ReportTables } from "./report-tables.ts";

/** The largest number that the database holds. A client may ask with a larger one. */
const versionMax = 2n ** 63n - 1n;

/** Brings the tables up to date and begins to listen. Rejects when the database cannot be reached. */
export async function startPostgresStore(
  config: ClientConfig,
  deps: DatabaseDeps,
): Promise<{ readonly store: PostgresStore; close(): Promise<void> }> {
  const client = await connectAlone(config);
  try {
    const steps = await migrate(client);
    if (steps > 0) deps.log.info("tables brought up to date", { count: steps });
  } finally {
    await client.end().catch(() => undefined);
  }
  const database = await createDatabase(config, deps);
  const changes = new ChangeFeed({ ...deps, connect: () => connectAlone(config, "krane server: changes") });
  const stopped = new AbortController();
  const listening = changes.run(stopped.signal);
  return {
    store: new PostgresStore(database, changes),
    async close() {
      stopped.abort();
      await listening;
      await database.close();
    },
  };
}

export class PostgresStore implements Store {
  private readonly database: Database;
  private readonly changes: ChangeFeed;
  private readonly reports: ReportTables;
  private readonly historyTable: HistoryTable;

  constructor(database: Database, changes: ChangeFeed) {
    this.database = database;
    this.changes = changes;
    this.reports = new ReportTables(database);
    this.historyTable = new HistoryTable(database);
  }

  async registerRegion(region: string): Promise<void> {
    if (region === "") throw new StoreError("incomplete", "a region needs a name");
    await this.database.transact(async (session) => {
      await session.query("INSERT INTO regions (name) VALUES ($1) ON CONFLICT DO NOTHING", [region]);
      await session.query("INSERT INTO agents (region) VALUES ($1) ON CONFLICT DO NOTHING", [region]);
    });
  }

  async regions(): Promise<readonly string[]> {
    const rows = await this.database.read<{ name: string }>("SELECT name FROM regions ORDER BY ordinal", []);
    return rows.map(({ name }) => name);
  }

  put<K extends Kind>(
    region: string,
    kind: K,
    spec: Spec<K>,
    author: Author,
    deploymentId?: string,
  ): Promise<bigint> {
    const id = kinds[kind].idOf(spec);
    const owner = deploymentId === undefined ? {} : { deploymentId };
    return this.change(region, author, (session, version) =>
      writeRow(session, region, kind, { id, spec, desired: "running", version, ...owner }),
    );
  }

  edit<K extends Kind>(
    region: string,
    kind: K,
    id: string,
    change: (spec: Spec<K>) => Spec<K>,
    author: Author,
  ): Promise<bigint | undefined> {
    return this.rewrite(region, kind, id, author, (row) => ({ ...row, spec: change(row.spec) }));
  }

  stop(region: string, kind: Kind, id: string, author: Author): Promise<bigint | undefined> {
    return this.rewrite(region, kind, id, author, (row) => ({ ...row, desired: "stopped" }));
  }

  async remove(region: string, kind: Kind, id: string, author: Author): Promise<boolean> {
    return this.database.transact(async (session) => {
      await lockRegion(session, region);
      const [removed] = await session.query<{ version: string }>(
        "DELETE FROM objects WHERE region = $1 AND kind = $2 AND id = $3 RETURNING version",
        [region, kind, id],
      );
      if (removed === undefined) return false;
      const entry = {
        ...author,
        kind,
        id,
        version: BigInt(removed.version),
        event: "removed",
        outcome: "",
      } as const;
      await this.historyTable.add(session, region, entry);
      return true;
    });
  }

  async row<K extends Kind>(region: string, kind: K, id: string): Promise<Row<K> | undefined> {
    const [row] = await this.database.read<MaybeObjectRow>(
      `SELECT ${objectColumns} FROM regions r
       LEFT JOIN objects o ON o.region = r.name AND o.kind = $2 AND o.id = $3 WHERE r.name = $1`,
      [region, kind, id],
    );
    if (row === undefined) throw unknownRegion(region);
    return hasObject(row) ? decodeRow(kind, row) : undefined;
  }

  async rows<K extends Kind>(region: string, kind: K): Promise<readonly Row<K>[]> {
    const rows = await this.database.read<MaybeObjectRow>(
      `SELECT ${objectColumns} FROM regions r
       LEFT JOIN objects o ON o.region = r.name AND o.kind = $2 WHERE r.name = $1 ORDER BY o.version`,
      [region, kind],
    );
    if (rows.length === 0) throw unknownRegion(region);
    return rows.filter(hasObject).map((row) => decodeRow(kind, row));
  }

  async changesSince<K extends Kind>(
    region: string,
    kind: K,
    cursor: bigint,
    limit: number,
  ): Promise<Changes<K>> {
    const rows = await this.database.read<MaybeObjectRow & { readonly counter: string }>(
      `SELECT r.counter, ${objectColumns} FROM regions r
       LEFT JOIN LATERAL (
         SELECT * FROM objects WHERE region = r.name AND kind = $2 AND version > $3
         ORDER BY version LIMIT $4
       ) o ON true
       WHERE r.name = $1 ORDER BY o.version`,
      [region, kind, cursor < versionMax ? cursor : versionMax, limit],
    );
    const first = rows[0];
    if (first === undefined) throw unknownRegion(region);
    return {
      rows: rows.filter(hasObject).map((row) => decodeRow(kind, row)),
      counter: BigInt(first.counter),
    };
  }

  async waitForChange(region: string, counterSeen: bigint, signal: AbortSignal): Promise<void> {
    if (!this.changes.knows(region)) {
      const sql = "SELECT counter FROM regions WHERE name = $1";
      const [row] = await this.database.read<{ counter: string }>(sql, [region]);
      if (row === undefined) throw unknownRegion(region);
      this.changes.learn(region, BigInt(row.counter));
    }
    await this.changes.wait(region, counterSeen, signal);
  }

  reportDeployment(region: string, k8sName: string, report: DeploymentReport): Promise<boolean> {
    return this.reports.reportDeployment(region, k8sName, report);
  }

  reportSentinel(
    region: string,
    sentinel: { readonly k8sName: string; readonly id: string },
    report: SentinelReport,
  ): Promise<boolean> {
    return this.reports.reportSentinel(region, sentinel, report);
  }

  reportHeartbeat(region: string, atMs: number): Promise<void> {
    return this.reports.reportHeartbeat(region, atMs);
  }

  reportAgent(region: string, report: AgentReport): Promise<void> {
    return this.reports.reportAgent(region, report);
  }

  deploymentReport(region: string, deploymentId: string): Promise<DeploymentReport | undefined> {
    return this.reports.deploymentReport(region, deploymentId);
  }

  sentinelReport(region: string, sentinelId: string): Promise<SentinelReport | undefined> {
    return this.reports.sentinelReport(region, sentinelId);
  }

  agents(): Promise<readonly AgentRecord[]> {
    return this.reports.agents();
  }

  history(region: string, query: HistoryQuery): Promise<readonly HistoryEntry[]> {
    return this.historyTable.newest(region, query);
  }

  trimHistory(retention: HistoryRetention, nowMs: number): Promise<void> {
    return this.historyTable.trim(retention, nowMs);
  }

  /** How many streams of this process wait for the next change of a region. */
  waitingCount(region: string): number {
    return this.changes.waitingCount(region);
  }

  private rewrite<K extends Kind>(
    region: string,
    kind: K,
    id: string,
    author: Author,
    next: (row: Row<K>) => Omit<Row<K>, "version">,
  ): Promise<bigint | undefined> {
    return this.change(region, author, async (session, version) => {
      const [found] = await session.query<ObjectRow>(
        `SELECT ${objectColumns} FROM objects o WHERE o.region = $1 AND o.kind = $2 AND o.id = $3`,
        [region, kind, id],
      );
      if (found === undefined) return undefined;
      const row = decodeRow(kind, found);
      if (row.desired === "unreadable") throw unreadable(kind, id);
      return writeRow(session, region, kind, { ...next(row), id, version });
    });
  }

  /** Gives what is written the next version and announces it. Nothing written takes no version. */
  private async change<W extends Written | undefined>(
    region: string,
    author: Author,
    write: (session: Session, version: bigint) => Promise<W>,
  ): Promise<W extends undefined ? bigint | undefined : bigint> {
    const version = await this.database
      .transact(async (session) => {
        const [row] = await session.query<{ counter: string }>(
          "UPDATE regions SET counter = counter + 1 WHERE name = $1 RETURNING counter",
          [region],
        );
        if (row === undefined) throw unknownRegion(region);
        const next = BigInt(row.counter);
        const written = await write(session, next);
        if (written === undefined) throw new NothingWritten();
        await this.historyTable.add(session, region, { ...author, ...written, version: next, outcome: "" });
        await session.query("SELECT pg_notify($1, $2)", [changeChannel, `${next} ${region}`]);
        return next;
      })
      .catch((error: unknown) => {
        if (error instanceof NothingWritten) return undefined;
        throw error;
      });
    if (version !== undefined) this.changes.learn(region, version);
    return version as W extends undefined ? bigint | undefined : bigint;
  }
}

type Written = Pick<HistoryEntry, "kind" | "id" | "event">;

/** Undoes the transaction, and with it the number that it took. */
class NothingWritten extends Error {}

async function lockRegion(session: Session, region: string): Promise<void> {
  const rows = await session.query("SELECT 1 FROM regions WHERE name = $1 FOR NO KEY UPDATE", [region]);
  if (rows.length === 0) throw unknownRegion(region);
}

async function writeRow<K extends Kind>(
  session: Session,
  region: string,
  kind: K,
  row: Row<K>,
): Promise<Written> {
  const { id, spec, desired, version, deploymentId } = row;
  const name = kinds[kind].nameOf(spec);
  const related = await session.query<{ id: string; name: string }>(
    "SELECT id, name FROM objects WHERE region = $1 AND kind = $2 AND (id = $3 OR name = $4)",
    [region, kind, id, name],
  );
  checkIdentity(kind, id, spec, {
    nameHolder: related.find((each) => each.name === name)?.id,
    nameBefore: related.find((each) => each.id === id)?.name,
  });
  await session.query(
    `INSERT INTO objects (region, kind, id, name, desired, format, spec, deployment_id, version)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
     ON CONFLICT (region, kind, id) DO UPDATE SET
       desired = excluded.desired, format = excluded.format, spec = excluded.spec,
       deployment_id = excluded.deployment_id, version = excluded.version`,
    [
      region,
      kind,
      id,
      name,
      desired,
      specFormat,
      Buffer.from(kinds[kind].encodeSpec(spec)),
      deploymentId ?? null,
      version,
    ],
  );
  return { kind, id, event: desired === "stopped" ? "stopped" : "set" };
}
