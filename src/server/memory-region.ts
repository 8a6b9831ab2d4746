// What the store in memory keeps of one region, and the work that touches several parts of it.
import type { ChangeSignal } from "./change-signal.ts";
import { EnvironmentList } from "./environment-list.ts";
import { type Gone, goneSince } from "./gone-objects.ts";
import type { Release } from "./held-releases.ts";
import { HistoryLog } from "./history-log.ts";
import { InstanceReports } from "./instance-reports.ts";
import { allKinds, type Kind } from "./kinds.ts";
import { RowTable } from "./row-table.ts";
import type { AgentRecord, Row, SentinelReport, StoredObject } from "./store.ts";

export interface Region {
  counter: bigint;
  tables: { readonly [K in Kind]: RowTable<K> };
  instances: InstanceReports;
  sentinels: Map<string, SentinelReport>;
  /** The version that each object had when it was last reported on, by kind and id. */
  reportedVersions: Map<string, bigint>;
  /** Noted for what was deleted, by kind and id. */
  gone: Map<string, Gone>;
  agent: Omit<AgentRecord, "region" | "newestVersion" | "newestOfKind">;
  releases: readonly Release[];
  environments: EnvironmentList;
  history: HistoryLog;
  readonly changed: ChangeSignal;
}

export function emptyRegion(): Omit<Region, "changed"> {
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
    gone: new Map(),
    agent: {},
    releases: [],
    environments: new EnvironmentList(),
    history: new HistoryLog(),
  };
}

export function storedObject<K extends Kind>(
  { instances, sentinels, reportedVersions }: Region,
  kind: K,
  row: Row<K>,
): StoredObject<K> {
  const deployment = kind === "deployment" ? instances.get(row.id) : undefined;
  const sentinel = kind === "sentinel" ? sentinels.get(row.id) : undefined;
  return {
    row,
    ...(deployment && { deployment }),
    ...(sentinel && { sentinel }),
    reportedVersion: reportedVersions.get(`${kind} ${row.id}`) ?? 0n,
  };
}

export function recordReport(
  { tables, reportedVersions, history }: Region,
  kind: Kind,
  id: string,
  atMs: number,
  outcome: string,
): void {
  const version = tables[kind].get(id)?.version ?? 0n;
  reportedVersions.set(`${kind} ${id}`, version);
  history.addReport({ by: "agent", atMs, kind, id, version, event: "reported", outcome });
}

/** Forgets what has been gone since before then. */
export function trimGone(region: Region, nowMs: number, oldestMs: number): void {
  for (const kind of allKinds) {
    for (const row of region.tables[kind].current()) {
      const key = `${kind} ${row.id}`;
      const object = storedObject(region, kind, row);
      const gone = goneSince(kind, object, region.agent.known, region.gone.get(key), nowMs);
      if (gone === undefined) region.gone.delete(key);
      else if (gone.atMs < oldestMs) forget(region, kind, row.id);
      else region.gone.set(key, gone);
    }
  }
}

export function forget(region: Region, kind: Kind, id: string): void {
  if (kind === "deployment") region.instances.delete(id);
  if (kind === "sentinel") region.sentinels.delete(id);
  region.reportedVersions.delete(`${kind} ${id}`);
  region.gone.delete(`${kind} ${id}`);
  region.tables[kind].delete(id);
}
