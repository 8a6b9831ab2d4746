// The data that the in-memory store keeps for one region, and the operations that span several parts of it.

import { type KindName, kindNames, kindOf, perKind } from "../kinds/kinds.ts";
import type { ObjectReport } from "../kinds/report.ts";
import type { ChangeSignal } from "./change-signal.ts";
import { EnvironmentList } from "./environment-list.ts";
import { forgottenBefore, type Gone, goneSince } from "./gone-objects.ts";
import type { Release } from "./held-releases.ts";
import { HistoryLog } from "./history-log.ts";
import { KeptReports } from "./kept-reports.ts";
import { RowTable } from "./row-table.ts";
import type { AgentRecord, Row, StoredObject } from "./store.ts";

export interface Region {
  counter: bigint;
  tables: { readonly [K in KindName]: RowTable<K> };
  reports: KeptReports;
  /** The summary of the last report on each object and the object's version at that time; by kind and id. */
  reported: Map<string, { readonly version: bigint; readonly outcome: string }>;
  /** For deleted objects, by kind and id. */
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
    // Each table is of the kind that it is listed under.
    tables: perKind(({ name }) => new RowTable(name)) as Region["tables"],
    reports: new KeptReports(),
    reported: new Map(),
    gone: new Map(),
    agent: {},
    releases: [],
    environments: new EnvironmentList(),
    history: new HistoryLog(),
  };
}

export function storedObject<K extends KindName>(
  { reports, reported }: Region,
  kind: K,
  row: Row<K>,
): StoredObject<K> {
  const report = reports.get(kind, row.id);
  return {
    row,
    ...(report && { report }),
    reportedVersion: reported.get(`${kind} ${row.id}`)?.version ?? 0n,
  };
}

/** Adds the report to history if it says something new. */
export function recordReport(
  { tables, reported, history }: Region,
  kind: KindName,
  id: string,
  report: ObjectReport,
): void {
  const outcome = kindOf(kind).reports?.outcomeOf(report) ?? "";
  const version = tables[kind].get(id)?.version ?? 0n;
  const last = reported.get(`${kind} ${id}`);
  if (last?.outcome === outcome && last.version === version) return;
  reported.set(`${kind} ${id}`, { version, outcome });
  history.add({ by: "agent", atMs: report.atMs, kind, id, version, event: "reported", outcome });
}

/** Purges objects that have been gone for longer. */
export function trimGone(region: Region, nowMs: number, ageMaxMs: number): void {
  const oldestMs = forgottenBefore(region.agent, ageMaxMs, nowMs);
  for (const kind of kindNames) {
    for (const row of region.tables[kind].current()) {
      const key = `${kind} ${row.id}`;
      const object = storedObject(region, kind, row);
      const gone = goneSince(kind, object, region.agent, region.gone.get(key), nowMs);
      if (gone === undefined) region.gone.delete(key);
      else if (gone.atMs < oldestMs) forget(region, kind, row.id);
      else region.gone.set(key, gone);
    }
  }
}

export function forget(region: Region, kind: KindName, id: string): void {
  region.reports.delete(kind, id);
  region.reported.delete(`${kind} ${id}`);
  region.gone.delete(`${kind} ${id}`);
  region.tables[kind].delete(id);
}
