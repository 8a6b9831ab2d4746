// The store in memory, for tests, simulation and `krane dev`. Every method does its
// work without a pause between reading and writing, so that a row and its number
// appear together, and each change is seen in order.
import { ChangeSignal } from "./change-signal.ts";
import { HistoryLog } from "./history-log.ts";
import { InstanceReports } from "./instance-reports.ts";
import { type Kind, kinds, type Spec } from "./kinds.ts";
import { deploymentOutcome, sentinelOutcome } from "./outcome-text.ts";
import { checkIdentity, unknownRegion, unreadable } from "./row-rules.ts";
import { RowTable } from "./row-table.ts";
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
} from "./store.ts";

interface Region {
  counter: bigint;
  tables: { readonly [K in Kind]: RowTable<K> };
  instances: InstanceReports;
  sentinels: Map<string, SentinelReport>;
  agent: Omit<AgentRecord, "region">;
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

  async put<K extends Kind>(
    region: string,
    kind: K,
    spec: Spec<K>,
    author: Author,
    deploymentId?: string,
  ): Promise<bigint> {
    const owner = deploymentId === undefined ? {} : { deploymentId };
    const row = { id: kinds[kind].idOf(spec), spec, desired: "running", ...owner } as const;
    return this.insert(region, kind, row, author);
  }

  async edit<K extends Kind>(
    region: string,
    kind: K,
    id: string,
    change: (spec: Spec<K>) => Spec<K>,
    author: Author,
  ): Promise<bigint | undefined> {
    const row = this.readableRow(region, kind, id);
    return row && this.insert(region, kind, { ...row, spec: change(row.spec) }, author);
  }

  async stop(region: string, kind: Kind, id: string, author: Author): Promise<bigint | undefined> {
    const row = this.readableRow(region, kind, id);
    return row && this.insert(region, kind, { ...row, desired: "stopped" }, author);
  }

  async remove(region: string, kind: Kind, id: string, author: Author): Promise<boolean> {
    const content = this.region(region);
    const row = content.tables[kind].get(id);
    if (row !== undefined) {
      content.history.add({ ...author, kind, id, version: row.version, event: "removed", outcome: "" });
    }
    if (kind === "deployment") content.instances.delete(id);
    if (kind === "sentinel") content.sentinels.delete(id);
    return content.tables[kind].delete(id);
  }

  async row<K extends Kind>(region: string, kind: K, id: string): Promise<Row<K> | undefined> {
    return this.table(region, kind).get(id);
  }

  async rows<K extends Kind>(region: string, kind: K): Promise<readonly Row<K>[]> {
    return this.table(region, kind).current();
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

  async reportAgent(region: string, state: AgentReport): Promise<void> {
    const content = this.region(region);
    content.agent = { ...content.agent, state };
  }

  async deploymentReport(region: string, deploymentId: string): Promise<DeploymentReport | undefined> {
    return this.region(region).instances.get(deploymentId);
  }

  async sentinelReport(region: string, sentinelId: string): Promise<SentinelReport | undefined> {
    return this.region(region).sentinels.get(sentinelId);
  }

  async agents(): Promise<readonly AgentRecord[]> {
    return [...this.regionsByName].map(([region, { agent }]) => ({ region, ...agent }));
  }

  async history(region: string, query: HistoryQuery): Promise<readonly HistoryEntry[]> {
    return this.region(region).history.newest(query);
  }

  async trimHistory(retention: HistoryRetention, nowMs: number): Promise<void> {
    for (const { history } of this.regionsByName.values()) history.trim(retention, nowMs);
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
    const table = this.table(name, kind);
    const { id, spec } = change;
    checkIdentity(kind, id, spec, {
      nameHolder: table.idOfName(kinds[kind].nameOf(spec)),
      nameBefore: nameOfRow(kind, table.get(id)),
    });
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
    const version = this.table(region, kind).get(id)?.version ?? 0n;
    this.region(region).history.addReport({
      by: "agent",
      atMs,
      kind,
      id,
      version,
      event: "reported",
      outcome,
    });
  }

  private readableRow<K extends Kind>(region: string, kind: K, id: string): Row<K> | undefined {
    const row = this.table(region, kind).get(id);
    if (row?.desired === "unreadable") throw unreadable(kind, id);
    return row;
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
    agent: {},
    history: new HistoryLog(),
  };
}

function nameOfRow<K extends Kind>(kind: K, row: Row<K> | undefined): string | undefined {
  return row && kinds[kind].nameOf(row.spec);
}
