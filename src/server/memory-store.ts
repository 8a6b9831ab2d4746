// The store in memory, for tests, simulation and `krane dev`. Every method does its
// work without a pause between reading and writing, so that a row and its number
// appear together, and each change is seen in order.
import { ChangeSignal } from "./change-signal.ts";
import { InstanceReports } from "./instance-reports.ts";
import { type Kind, kinds, type Spec } from "./kinds.ts";
import { RowTable } from "./row-table.ts";
import {
  type AgentRecord,
  type AgentReport,
  type Changes,
  type DeploymentReport,
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
  readonly changed: ChangeSignal;
}

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

  async put<K extends Kind>(region: string, kind: K, spec: Spec<K>, deploymentId?: string): Promise<bigint> {
    const owner = deploymentId === undefined ? {} : { deploymentId };
    return this.insert(region, kind, { id: kinds[kind].idOf(spec), spec, desired: "running", ...owner });
  }

  async edit<K extends Kind>(
    region: string,
    kind: K,
    id: string,
    change: (spec: Spec<K>) => Spec<K>,
  ): Promise<bigint | undefined> {
    const row = this.table(region, kind).get(id);
    return row && this.insert(region, kind, { ...row, spec: change(row.spec) });
  }

  async stop(region: string, kind: Kind, id: string): Promise<bigint | undefined> {
    const row = this.table(region, kind).get(id);
    return row && this.insert(region, kind, { ...row, desired: "stopped" });
  }

  async remove(region: string, kind: Kind, id: string): Promise<boolean> {
    const content = this.region(region);
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
  insert<K extends Kind>(name: string, kind: K, change: Omit<Row<K>, "version">): bigint {
    const region = this.region(name);
    checkIdentity(this.table(name, kind), kind, change);
    region.counter += 1n;
    this.table(name, kind).put({ ...change, version: region.counter });
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

  private region(name: string): Region {
    const region = this.regionsByName.get(name);
    if (region === undefined) throw new StoreError("unknown_region", `region ${name} is not registered`);
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
  };
}

function checkIdentity<K extends Kind>(
  table: RowTable<K>,
  kind: K,
  { id, spec }: Pick<Row<K>, "id" | "spec">,
): void {
  const { idOf, nameOf } = kinds[kind];
  const name = nameOf(spec);
  if (id === "" || spec.k8sName === "" || idOf(spec) !== id) {
    throw new StoreError("incomplete", `a ${kind} needs an id and a name that stay`);
  }
  const holder = table.idOfName(name);
  if (holder !== undefined && holder !== id) {
    throw new StoreError("name_taken", `${kind} ${holder} has the name ${name} already`);
  }
  const row = table.get(id);
  if (row !== undefined && nameOf(row.spec) !== name) {
    throw new StoreError("name_changed", `${kind} ${id} is called ${nameOf(row.spec)}, not ${name}`);
  }
}
