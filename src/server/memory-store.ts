// The store in memory, for tests, simulation and `krane dev`. Every method does its
// work without a pause between reading and writing, so that a row and its number
// appear together, and each change is seen in order.
import { ChangeSignal } from "./change-signal.ts";
import { EnvironmentList } from "./environment-list.ts";
import { assertUnused, tenantKinds } from "./environment-rules.ts";
import { findHeld, type Release, releasesFor } from "./held-releases.ts";
import { HistoryLog } from "./history-log.ts";
import { InstanceReports } from "./instance-reports.ts";
import { type Kind, kinds, type Spec } from "./kinds.ts";
import { deploymentOutcome, sentinelOutcome } from "./outcome-text.ts";
import { checkIdentity, editing, isSame, putting, stopping, unknownRegion } from "./row-rules.ts";
import { RowTable } from "./row-table.ts";
import {
  type AgentRecord,
  type AgentReport,
  type Author,
  type Changed,
  type ChangeOptions,
  type Changes,
  type Condition,
  type Decide,
  type DeploymentReport,
  type EnvironmentContent,
  type HeldDeletion,
  type HistoryQuery,
  type HistoryRetention,
  type HistorySince,
  type NumberedEntry,
  type PutOptions,
  type Row,
  type SentinelReport,
  type Store,
  type StoredEnvironment,
  type StoredObject,
  StoreError,
} from "./store.ts";
import { kindOfController, troubleNews } from "./trouble-news.ts";

interface Region {
  counter: bigint;
  tables: { readonly [K in Kind]: RowTable<K> };
  instances: InstanceReports;
  sentinels: Map<string, SentinelReport>;
  /** The version that each object had when it was last reported on, by kind and id. */
  reportedVersions: Map<string, bigint>;
  agent: Omit<AgentRecord, "region" | "newestVersion" | "newestOfKind">;
  releases: readonly Release[];
  environments: EnvironmentList;
  history: HistoryLog;
  readonly changed: ChangeSignal;
}

const nobody: Author = { by: "", atMs: 0 };

export class MemoryStore implements Store {
  private readonly regionsByName = new Map<string, Region>();

  async registerRegion(region: string): Promise<void> {
    if (region === "") throw new StoreError("incomplete", "a region needs a name");
    if (this.regionsByName.has(region)) return;
    this.regionsByName.set(region, { ...emptyContent(), changed: new ChangeSignal() });
  }

  async regions(): Promise<readonly string[]> {
    return [...this.regionsByName.keys()];
  }

  async change<K extends Kind>(
    region: string,
    kind: K,
    id: string,
    decide: Decide<K>,
    author: Author,
    { dryRun = false, environmentId = "" }: ChangeOptions = {},
  ): Promise<Changed<K>> {
    const before = this.table(region, kind).get(id);
    const wanted = decide(before, this.region(region).environments.get(environmentId));
    if (wanted === undefined || (before !== undefined && isSame(kind, before, wanted))) {
      return { before, after: before };
    }
    const row = { id, ...wanted };
    if (dryRun) {
      this.checkRow(region, kind, row);
      return { before, after: { ...row, version: before?.version ?? 0n } };
    }
    return { before, after: { ...row, version: this.insert(region, kind, row, author) } };
  }

  async put<K extends Kind>(
    region: string,
    kind: K,
    spec: Spec<K>,
    author: Author,
    options?: PutOptions,
  ): Promise<bigint> {
    const { after } = await this.change(region, kind, kinds[kind].idOf(spec), putting(spec, options), author);
    return after?.version ?? 0n;
  }

  async edit<K extends Kind>(
    region: string,
    kind: K,
    id: string,
    change: (spec: Spec<K>) => Spec<K>,
    author: Author,
    condition?: Condition,
  ): Promise<bigint | undefined> {
    return (await this.change(region, kind, id, editing(kind, change, condition), author)).after?.version;
  }

  async stop(
    region: string,
    kind: Kind,
    id: string,
    author: Author,
    condition?: Condition,
  ): Promise<bigint | undefined> {
    return (await this.change(region, kind, id, stopping(kind, condition), author)).after?.version;
  }

  async remove(region: string, kind: Kind, id: string, author: Author): Promise<boolean> {
    const content = this.region(region);
    const row = content.tables[kind].get(id);
    if (row !== undefined) {
      content.history.add({ ...author, kind, id, version: row.version, event: "removed", outcome: "" });
    }
    this.forget(content, kind, id);
    return row !== undefined;
  }

  async row<K extends Kind>(region: string, kind: K, id: string): Promise<Row<K> | undefined> {
    return this.table(region, kind).get(id);
  }

  async rows<K extends Kind>(region: string, kind: K): Promise<readonly Row<K>[]> {
    return this.table(region, kind).current();
  }

  async object<K extends Kind>(region: string, kind: K, id: string): Promise<StoredObject<K> | undefined> {
    const row = this.table(region, kind).get(id);
    return row && this.storedObject(region, kind, row);
  }

  async objects<K extends Kind>(
    region: string,
    kind: K,
    afterId: string,
    limit: number,
  ): Promise<readonly StoredObject<K>[]> {
    return this.table(region, kind)
      .current()
      .filter(({ id }) => id > afterId)
      .sort((a, b) => (a.id < b.id ? -1 : 1))
      .slice(0, limit)
      .map((row) => this.storedObject(region, kind, row));
  }

  async changesSince<K extends Kind>(
    region: string,
    kind: K,
    cursor: bigint,
    limit: number,
  ): Promise<Changes<K>> {
    return { rows: this.table(region, kind).after(cursor, limit), counter: this.region(region).counter };
  }

  async waitForChange(region: string, counterSeen: bigint, signal: AbortSignal): Promise<void> {
    const { counter, changed } = this.region(region);
    if (counter === counterSeen) await changed.wait(signal);
  }

  async reportDeployment(region: string, k8sName: string, report: DeploymentReport): Promise<boolean> {
    const { tables, instances } = this.region(region);
    const id = tables.deployment.idOfName(k8sName);
    if (id === undefined) return false;
    instances.replace(id, report);
    this.recordReport(region, "deployment", id, report.atMs, deploymentOutcome(report));
    return true;
  }

  async reportSentinel(
    region: string,
    sentinel: { readonly k8sName: string; readonly id: string },
    report: SentinelReport,
  ): Promise<boolean> {
    const { tables, sentinels } = this.region(region);
    const id = tables.sentinel.idOfName(sentinel.k8sName);
    if (id === undefined || (sentinel.id !== "" && sentinel.id !== id)) return false;
    sentinels.set(id, report);
    this.recordReport(region, "sentinel", id, report.atMs, sentinelOutcome(report));
    return true;
  }

  async reportHeartbeat(region: string, atMs: number): Promise<void> {
    const content = this.region(region);
    content.agent = { ...content.agent, heartbeatAtMs: atMs };
  }

  async reportAgent(region: string, state: AgentReport): Promise<readonly HeldDeletion[]> {
    const content = this.region(region);
    for (const entry of troubleNews(content.agent.state, state)) content.history.add(entry);
    content.agent = { ...content.agent, state };
    content.releases = releasesFor(content.releases, state);
    return content.releases;
  }

  async releaseDeletion(region: string, deletion: HeldDeletion, author: Author): Promise<boolean> {
    const content = this.region(region);
    const held = findHeld(content.agent.state?.report.blockedDeletions ?? [], deletion);
    if (held === undefined) return false;
    const { controller, key, id } = held;
    const others = content.releases.filter((each) => each.controller !== controller || each.key !== key);
    content.releases = [...others, { controller, key, atMs: author.atMs }];
    const kind = kindOfController(controller);
    if (kind !== undefined) {
      const version = content.tables[kind].get(id)?.version ?? 0n;
      content.history.add({ ...author, kind, id, version, event: "released", outcome: "" });
    }
    return true;
  }

  async deploymentReport(region: string, deploymentId: string): Promise<DeploymentReport | undefined> {
    return this.region(region).instances.get(deploymentId);
  }

  async sentinelReport(region: string, sentinelId: string): Promise<SentinelReport | undefined> {
    return this.region(region).sentinels.get(sentinelId);
  }

  async agents(region?: string): Promise<readonly AgentRecord[]> {
    return [...this.regionsByName]
      .filter(([name]) => (region ?? name) === name)
      .map(([name, { agent, counter, tables }]) => {
        const newestOfKind = {
          deployment: tables.deployment.newest(),
          sentinel: tables.sentinel.newest(),
          policy: tables.policy.newest(),
        };
        return { region: name, newestVersion: counter, newestOfKind, ...agent };
      });
  }

  async changeEnvironment(
    region: string,
    id: string,
    decide: (environment: StoredEnvironment | undefined) => EnvironmentContent | undefined,
  ): Promise<StoredEnvironment | undefined> {
    return this.region(region).environments.change(id, decide);
  }

  async removeEnvironment(region: string, id: string): Promise<boolean> {
    for (const kind of tenantKinds) assertUnused(id, this.table(region, kind).current());
    return this.region(region).environments.delete(id);
  }

  async environment(region: string, id: string): Promise<StoredEnvironment | undefined> {
    return this.region(region).environments.get(id);
  }

  async environments(region: string, afterId: string, limit: number): Promise<readonly StoredEnvironment[]> {
    return this.region(region).environments.behind(afterId, limit);
  }

  async history(region: string, query: HistoryQuery): Promise<readonly NumberedEntry[]> {
    return this.region(region).history.newest(query);
  }

  async historySince(region: string, number: bigint, query: HistoryQuery): Promise<HistorySince> {
    return this.region(region).history.since(number, query);
  }

  async trimHistory(retention: HistoryRetention, nowMs: number): Promise<void> {
    for (const content of this.regionsByName.values()) {
      content.history.trim(retention, nowMs);
      this.trimStopped(content, nowMs - retention.ageMaxMs);
    }
  }

  /** The region as a restore from an empty backup leaves it: known, and without anything. */
  clear(region: string): void {
    Object.assign(this.region(region), emptyContent());
    this.region(region).changed.wakeAll();
  }

  /** Goes on counting from here. */
  setCounter(region: string, counter: bigint): void {
    this.region(region).counter = counter;
    this.region(region).changed.wakeAll();
  }

  /** Gives a row the next version and wakes the streams, before anything else can run. */
  insert<K extends Kind>(
    name: string,
    kind: K,
    change: Omit<Row<K>, "version">,
    author: Author = nobody,
  ): bigint {
    const region = this.region(name);
    this.checkRow(name, kind, change);
    region.counter += 1n;
    const version = region.counter;
    this.table(name, kind).put({ ...change, version });
    const event = change.desired === "stopped" ? "stopped" : "set";
    region.history.add({ ...author, kind, id: change.id, version, event, outcome: "" });
    region.changed.wakeAll();
    return region.counter;
  }

  /** A row as it is, with whatever version it has, and without waking anybody. */
  insertSilently<K extends Kind>(region: string, kind: K, row: Row<K>): void {
    this.table(region, kind).put(row);
  }

  /** How many streams wait for the next change of a region. */
  waitingCount(region: string): number {
    return this.region(region).changed.size;
  }

  private recordReport(region: string, kind: Kind, id: string, atMs: number, outcome: string): void {
    const content = this.region(region);
    const version = content.tables[kind].get(id)?.version ?? 0n;
    content.reportedVersions.set(`${kind} ${id}`, version);
    content.history.addReport({ by: "agent", atMs, kind, id, version, event: "reported", outcome });
  }

  private checkRow<K extends Kind>(region: string, kind: K, { id, spec }: Omit<Row<K>, "version">): void {
    const table = this.table(region, kind);
    checkIdentity(kind, id, spec, {
      nameHolder: table.idOfName(kinds[kind].nameOf(spec)),
      nameBefore: nameOfRow(kind, table.get(id)),
    });
  }

  private storedObject<K extends Kind>(region: string, kind: K, row: Row<K>): StoredObject<K> {
    const { instances, sentinels, reportedVersions } = this.region(region);
    const deployment = kind === "deployment" ? instances.get(row.id) : undefined;
    const sentinel = kind === "sentinel" ? sentinels.get(row.id) : undefined;
    return {
      row,
      ...(deployment && { deployment }),
      ...(sentinel && { sentinel }),
      reportedVersion: reportedVersions.get(`${kind} ${row.id}`) ?? 0n,
    };
  }

  private trimStopped(content: Region, oldestMs: number): void {
    for (const { id, desired, version } of content.tables.deployment.current()) {
      const report = content.instances.get(id);
      const isGone = report?.exists === false && report.atMs < oldestMs;
      const wasToldSince = content.reportedVersions.get(`deployment ${id}`) === version;
      if (desired === "stopped" && isGone && wasToldSince) this.forget(content, "deployment", id);
    }
  }

  private forget(content: Region, kind: Kind, id: string): void {
    if (kind === "deployment") content.instances.delete(id);
    if (kind === "sentinel") content.sentinels.delete(id);
    content.reportedVersions.delete(`${kind} ${id}`);
    content.tables[kind].delete(id);
  }

  private region(name: string): Region {
    const region = this.regionsByName.get(name);
    if (region === undefined) throw unknownRegion(name);
    return region;
  }

  private table<K extends Kind>(region: string, kind: K): RowTable<K> {
    return this.region(region).tables[kind];
  }
}

function emptyContent(): Omit<Region, "changed"> {
  return {
    counter: 0n,
    tables: {
      deployment: new RowTable("deployment"),
      sentinel: new RowTable("sentinel"),
      policy: new RowTable("policy"),
    },
    instances: new InstanceReports(),
    sentinels: new Map(),
    reportedVersions: new Map(),
    agent: {},
    releases: [],
    environments: new EnvironmentList(),
    history: new HistoryLog(),
  };
}

function nameOfRow<K extends Kind>(kind: K, row: Row<K> | undefined): string | undefined {
  return row && kinds[kind].nameOf(row.spec);
}
