// The store in PostgreSQL, shared by any number of server processes.
import type { ClientBase, ClientConfig } from "pg";
import { onAbort } from "../../concurrency/abort-listener.ts";
import { sleep } from "../../concurrency/clock.ts";
import type { Incarnation } from "../../control-plane/incarnation.ts";
import type { KindName, ReportOf } from "../../kinds/kinds.ts";
import type { StoreIncarnation } from "../client-position.ts";
import { DesiredChanges } from "../desired-changes.ts";
import type { HostnameStore } from "../hostnames.ts";
import type { ServerChannel } from "../logs/server-channel.ts";
import type { ReceivedReport, ReportRank } from "../report-rank.ts";
import { unknownRegion } from "../row-rules.ts";
import type { SessionStore } from "../sessions.ts";
import type { SetStore } from "../sets.ts";
import type { Standby } from "../standbys.ts";
import {
  type AgentRecord,
  type AgentReport,
  type AppFacts,
  type Author,
  type BucketContents,
  type ChangeAppOptions,
  type Changed,
  type ChangedApp,
  type ChangeOptions,
  type Changes,
  type Decide,
  type DecideApp,
  type EnvironmentContent,
  type FoundRow,
  type HeldDeletion,
  type HistoryQuery,
  type HistoryRetention,
  type HistorySince,
  type KindDigest,
  type NewIncarnation,
  type NumberedEntry,
  type RegionMark,
  type Row,
  type Store,
  type StoredEnvironment,
  type StoredObject,
  StoreError,
  type StrangerRef,
} from "../store.ts";
import { AdoptionTable } from "./adoption-table.ts";
import { AgentTable } from "./agent-table.ts";
import { AppTable } from "./app-table.ts";
import { ChangeFeed } from "./change-feed.ts";
import { connectAlone, createDatabase, type Database, type DatabaseDeps } from "./database.ts";
import { DigestTable } from "./digest-table.ts";
import { EnvironmentTable } from "./environment-table.ts";
import { trimGone } from "./gone-rows.ts";
import { HistoryTable } from "./history-table.ts";
import { HostnameTables } from "./hostname-tables.ts";
import { IncarnationTable } from "./incarnation-table.ts";
import { isMigrated, migrate } from "./migrations.ts";
import { NotifyChannel } from "./notify-channel.ts";
import { ObjectTable } from "./object-table.ts";
import { ReportTables } from "./report-tables.ts";
import { SessionTable } from "./session-table.ts";
import { SetTable } from "./set-table.ts";

/** Brings the tables up to date and starts listening. Rejects when the database cannot be reached. */
export async function startPostgresStore(
  config: ClientConfig,
  deps: DatabaseDeps,
  signal = new AbortController().signal,
): Promise<{ readonly store: PostgresStore; close(): Promise<void> }> {
  await bringUpToDate(config, deps, signal);
  const database = await createDatabase(config, deps);
  const incarnations = createIncarnations(database, deps);
  try {
    await incarnations.check();
  } catch (error) {
    await database.close();
    throw error;
  }
  const changes = new ChangeFeed({
    ...deps,
    connect: () => connectAlone(config, "krane server: changes"),
    beforePoll: () => incarnations.check(),
    onRolledBack: (region, version) => incarnations.startAfterRollBack(region, version),
  });
  const channel = new NotifyChannel({
    ...deps,
    connect: () => connectAlone(config, "krane server: messages"),
  });
  const stopped = new AbortController();
  const listening = changes.run(stopped.signal);
  return {
    store: new PostgresStore(database, changes, incarnations, channel),
    async close() {
      stopped.abort();
      await Promise.all([listening, channel.close()]);
      await database.close();
    },
  };
}

function createIncarnations(database: Database, { clock, log }: DatabaseDeps): IncarnationTable {
  return new IncarnationTable(database, {
    nowMs: () => clock.nowMs(),
    onStarted({ ordinal, parent }, reason) {
      const news =
        parent === "" ? "first incarnation started" : "new incarnation started; agents compare everything";
      log.info(news, { version: ordinal, reason });
    },
  });
}

const migratedEveryMs = 2_000;

async function bringUpToDate(
  config: ClientConfig,
  { clock, log }: DatabaseDeps,
  signal: AbortSignal,
): Promise<void> {
  const client = await connectAlone(config, "krane server: tables", 0);
  const hangUp = () => client.end().catch(() => undefined);
  const release = onAbort(signal, () => void hangUp());
  try {
    signal.throwIfAborted();
    if (await isReplica(client)) {
      log.warn("the database is a replica: it can be read, but reports and changes fail");
      for (let isTold = false; !(await isMigrated(client)); isTold = true) {
        if (!isTold)
          log.warn(
            "the primary of the database has not been migrated; waiting for a server of this version there",
          );
        await sleep(clock, migratedEveryMs, signal);
      }
      return;
    }
    const onWaiting = () => log.info("another server is migrating the tables; waiting for it");
    const steps = await migrate(client, { onWaiting });
    if (steps > 0) log.info("tables migrated", { count: steps });
  } finally {
    release();
    await hangUp();
  }
}

async function isReplica(client: ClientBase): Promise<boolean> {
  const { rows } = await client.query<{ is_replica: boolean }>("SELECT pg_is_in_recovery() AS is_replica");
  return rows[0]?.is_replica === true;
}

export class PostgresStore extends DesiredChanges implements Store {
  readonly sessions: SessionStore;
  readonly sets: SetStore;
  readonly hostnames: HostnameStore;
  readonly channel: ServerChannel | undefined;
  private readonly database: Database;
  private readonly changes: ChangeFeed;
  private readonly desired: ObjectTable;
  private readonly reports: ReportTables;
  private readonly agentTable: AgentTable;
  private readonly adoptionTable: AdoptionTable;
  private readonly environmentTable: EnvironmentTable;
  private readonly appTable: AppTable;
  private readonly historyTable: HistoryTable;
  private readonly incarnations: IncarnationTable;
  private readonly digests: DigestTable;

  constructor(
    database: Database,
    changes: ChangeFeed,
    incarnations: IncarnationTable,
    channel?: ServerChannel,
  ) {
    super();
    this.channel = channel;
    this.database = database;
    this.changes = changes;
    this.incarnations = incarnations;
    this.desired = new ObjectTable(database, incarnations);
    this.reports = new ReportTables(database);
    this.agentTable = new AgentTable(database);
    this.adoptionTable = new AdoptionTable(database);
    this.environmentTable = new EnvironmentTable(database);
    this.appTable = new AppTable(database, this.desired);
    this.historyTable = new HistoryTable(database);
    this.digests = new DigestTable(database);
    this.sessions = new SessionTable(database);
    this.sets = new SetTable(database);
    this.hostnames = new HostnameTables(database);
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

  incarnation(): Promise<StoreIncarnation | undefined> {
    return this.incarnations.current();
  }

  startIncarnation(start: NewIncarnation): Promise<Incarnation | undefined> {
    return this.incarnations.start(start);
  }

  async change<K extends KindName>(
    region: string,
    kind: K,
    id: string,
    decide: Decide<K>,
    author: Author,
    options?: ChangeOptions,
  ): Promise<Changed<K>> {
    const changed = await this.desired.change(region, kind, id, decide, author, options);
    if (changed.after !== undefined) this.changes.learn(region, changed.after.version);
    return changed;
  }

  remove(region: string, kind: KindName, id: string, author: Author): Promise<boolean> {
    return this.desired.remove(region, kind, id, author);
  }

  row<K extends KindName>(region: string, kind: K, id: string): Promise<Row<K> | undefined> {
    return this.desired.row(region, kind, id);
  }

  find<K extends KindName>(region: string, kind: K, id: string): Promise<FoundRow<K>> {
    return this.desired.find(region, kind, id);
  }

  rows<K extends KindName>(region: string, kind: K): Promise<readonly Row<K>[]> {
    return this.desired.rows(region, kind);
  }

  async object<K extends KindName>(
    region: string,
    kind: K,
    id: string,
  ): Promise<StoredObject<K> | undefined> {
    return (await this.reports.objects(region, kind, { id }))[0];
  }

  objects<K extends KindName>(
    region: string,
    kind: K,
    afterId: string,
    limit: number,
    ids?: readonly string[],
  ): Promise<readonly StoredObject<K>[]> {
    return this.reports.objects(region, kind, { afterId, limit, ids });
  }

  digest(region: string, kind: KindName, knownSum?: bigint): Promise<KindDigest> {
    return this.digests.digest(region, kind, knownSum);
  }

  contents(region: string, kind: KindName, buckets: readonly number[]): Promise<BucketContents> {
    return this.digests.contents(region, kind, buckets);
  }

  async verifyDigests(region: string): Promise<readonly KindName[]> {
    // A replica cannot correct them, and its primary is verified by the servers there.
    return (await this.incarnation())?.isReplica === true ? [] : this.digests.verify(region);
  }

  changesSince<K extends KindName>(
    region: string,
    kind: K,
    cursor: bigint,
    limit: number,
  ): Promise<Changes<K>> {
    return this.desired.changesSince(region, kind, cursor, limit);
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

  async report<K extends KindName>(
    region: string,
    kind: K,
    object: { readonly name: string; readonly id: string },
    report: ReportOf<K>,
    rank?: ReportRank,
  ): Promise<boolean> {
    const [stored = false] = await this.reportMany(region, kind, [{ ...object, report, rank }]);
    return stored;
  }

  reportMany<K extends KindName>(
    region: string,
    kind: K,
    received: readonly ReceivedReport<ReportOf<K>>[],
  ): Promise<readonly boolean[]> {
    return this.reports.reportMany(region, kind, received);
  }

  reportHeartbeat(region: string, atMs: number): Promise<void> {
    return this.agentTable.reportHeartbeat(region, atMs);
  }

  reportStandby(region: string, standby: Standby): Promise<void> {
    return this.agentTable.reportStandby(region, standby);
  }

  reportAgent(region: string, report: AgentReport): Promise<readonly HeldDeletion[]> {
    return this.agentTable.reportAgent(region, report);
  }

  releaseDeletion(region: string, deletion: HeldDeletion, author: Author): Promise<boolean> {
    return this.agentTable.releaseDeletion(region, deletion, author);
  }

  adoptObjects(
    region: string,
    objects: readonly StrangerRef[],
    author: Author,
  ): Promise<readonly StrangerRef[]> {
    return this.adoptionTable.adoptObjects(region, objects, author);
  }

  adoptionsFor(region: string, report: AgentReport): Promise<readonly StrangerRef[]> {
    return this.adoptionTable.adoptionsFor(region, report);
  }

  agents(region?: string): Promise<readonly AgentRecord[]> {
    return this.agentTable.agents(region);
  }

  marks(): Promise<readonly RegionMark[]> {
    return this.agentTable.marks();
  }

  changeEnvironment(
    region: string,
    id: string,
    decide: (environment: StoredEnvironment | undefined) => EnvironmentContent | undefined,
    author: Author,
  ): Promise<StoredEnvironment | undefined> {
    return this.environmentTable.change(region, id, decide, author);
  }

  removeEnvironment(region: string, id: string, author: Author): Promise<boolean> {
    return this.environmentTable.remove(region, id, author);
  }

  async environment(region: string, id: string): Promise<StoredEnvironment | undefined> {
    return (await this.environmentTable.list(region, { id }))[0];
  }

  environments(region: string, afterId: string, limit: number): Promise<readonly StoredEnvironment[]> {
    return this.environmentTable.list(region, { afterId, limit });
  }

  async changeApp(
    region: string,
    id: string,
    decide: DecideApp,
    author: Author,
    options?: ChangeAppOptions,
  ): Promise<ChangedApp> {
    const { counter, ...changed } = await this.appTable.change(region, id, decide, author, options);
    if (counter !== undefined) this.changes.learn(region, counter);
    return changed;
  }

  app(region: string, id: string): Promise<AppFacts> {
    return this.appTable.facts(region, id);
  }

  apps(region: string, afterId: string, limit: number): Promise<readonly AppFacts[]> {
    return this.appTable.list(region, afterId, limit);
  }

  activeApps(): Promise<readonly { readonly region: string; readonly id: string }[]> {
    return this.appTable.active();
  }

  history(region: string, query: HistoryQuery): Promise<readonly NumberedEntry[]> {
    return this.historyTable.newest(region, query);
  }

  historySince(region: string, number: bigint, query: HistoryQuery): Promise<HistorySince> {
    return this.historyTable.since(region, number, query);
  }

  async trimHistory(retention: HistoryRetention, nowMs: number): Promise<void> {
    await this.historyTable.trim(retention, nowMs);
    for (const region of await this.regions()) {
      // Read when its turn comes: with many regions that is a while later, and an agent may have reported since.
      const [agent = {}] = await this.agents(region);
      await trimGone(this.database, region, agent, { nowMs, ageMaxMs: retention.ageMaxMs });
    }
  }

  /** The number of streams in this process that wait for the next change of a region. */
  waitingCount(region: string): number {
    return this.changes.waitingCount(region);
  }
}
