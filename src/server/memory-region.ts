// The data that the in-memory store keeps for one region, and the operations that span several parts of it.

import type { ChangeSignal } from "../concurrency/change-signal.ts";
import type { App } from "../gen/krane/admin/v1/app_pb.ts";
import { type KindName, kindNames, kindOf, kindOfController, perKind } from "../kinds/kinds.ts";
import type { ObjectReport } from "../kinds/report.ts";
import { type AllowedAdoption, acceptedOf, adoptedText, refOf, strangerKey } from "./allowed-adoptions.ts";
import { isSameEnvironment } from "./environment-rules.ts";
import { forgottenBefore, type Gone, goneSince } from "./gone-objects.ts";
import type { Release } from "./held-releases.ts";
import { KeptReports } from "./kept-reports.ts";
import type { RankedAt } from "./report-rank.ts";
import { RowTable } from "./row-table.ts";
import { endsMembership, RegionSets, type SetMember, type SetStore } from "./sets.ts";
import {
  type AgentRecord,
  type Author,
  type EnvironmentContent,
  type HistoryEntry,
  type HistoryQuery,
  type HistoryRetention,
  type HistorySince,
  type NumberedEntry,
  observations,
  type Row,
  type StoredEnvironment,
  type StoredObject,
  type StrangerRef,
} from "./store.ts";

export interface Region {
  counter: bigint;
  tables: { readonly [K in KindName]: RowTable<K> };
  reports: KeptReports;
  /** The summary of the last report on each object and the object's version at that time; by kind and id. */
  reported: Map<string, { readonly version: bigint; readonly outcome: string }>;
  /** The order of the last report on each object; by kind and id. */
  ranks: Map<string, RankedAt>;
  /** For deleted objects, by kind and id. */
  gone: Map<string, Gone>;
  agent: Omit<AgentRecord, "region" | "newestVersion" | "newestOfKind">;
  releases: readonly Release[];
  adoptions: readonly AllowedAdoption[];
  environments: EnvironmentList;
  /** By id. */
  apps: Map<string, App>;
  /** Versions never repeat, also if an app is deleted and created again. */
  appCounter: bigint;
  sets: RegionSets;
  history: HistoryLog;
  readonly changed: ChangeSignal;
}

export function emptyRegion(): Omit<Region, "changed"> {
  const sets = new RegionSets();
  return {
    counter: 0n,
    // Each table is of the kind that it is listed under.
    tables: perKind(({ name }) => new RowTable(name)) as Region["tables"],
    reports: new KeptReports(),
    reported: new Map(),
    ranks: new Map(),
    gone: new Map(),
    agent: {},
    releases: [],
    adoptions: [],
    environments: new EnvironmentList(),
    apps: new Map(),
    appCounter: 0n,
    sets,
    history: new HistoryLog(sets),
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

/** Returns those that the last report lists as adoptable. */
export function allowAdoptions(
  region: Region,
  objects: readonly StrangerRef[],
  author: Author,
): readonly StrangerRef[] {
  const accepted = acceptedOf(objects, region.agent.state?.report);
  const keys = new Set(accepted.map(strangerKey));
  const others = region.adoptions.filter((each) => !keys.has(strangerKey(each)));
  region.adoptions = [...others, ...accepted.map((each) => ({ ...refOf(each), atMs: author.atMs }))];
  for (const { controller, id, ...stranger } of accepted) {
    const kind = kindOfController(controller)?.name;
    const version = kind && region.tables[kind].get(id)?.version;
    if (kind === undefined || version === undefined) continue;
    const outcome = adoptedText(stranger);
    region.history.add({ ...author, kind, id, version, event: "adopted", outcome });
  }
  return accepted;
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
  region.ranks.delete(`${kind} ${id}`);
  region.gone.delete(`${kind} ${id}`);
  region.tables[kind].delete(id);
}

/**
 * The environments of one region in memory. Versions are counted per region, not per
 * environment, so that an environment that is deleted and created again never repeats a
 * version.
 */
class EnvironmentList {
  private readonly byId = new Map<string, StoredEnvironment>();
  private counter = 0n;

  get(id: string): StoredEnvironment | undefined {
    return this.byId.get(id);
  }

  /** Ordered by id. */
  behind(afterId: string, limit: number): readonly StoredEnvironment[] {
    const rest = [...this.byId.values()].filter(({ id }) => id > afterId);
    return rest.sort((a, b) => (a.id < b.id ? -1 : 1)).slice(0, limit);
  }

  change(
    id: string,
    decide: (environment: StoredEnvironment | undefined) => EnvironmentContent | undefined,
  ): StoredEnvironment | undefined {
    const before = this.byId.get(id);
    const wanted = decide(before);
    if (wanted === undefined || (before !== undefined && isSameEnvironment(before, wanted))) return before;
    this.counter += 1n;
    const { workspaceId, projectId, secrets } = wanted;
    const after = { id, workspaceId, projectId, secrets: new Map(secrets), version: this.counter };
    this.byId.set(id, after);
    return after;
  }

  delete(id: string): boolean {
    return this.byId.delete(id);
  }
}

// The history of one region in memory, limited to the newest entries.

const entriesMax = 1_000;

class HistoryLog {
  /** Oldest first. */
  private entries: NumberedEntry[] = [];
  private last = 0n;
  private readonly sets: RegionSets;

  constructor(sets: RegionSets) {
    this.sets = sets;
  }

  add(entry: HistoryEntry): void {
    if (endsMembership(entry)) this.sets.leave(entry);
    this.last += 1n;
    this.entries.push({ ...entry, number: this.last });
    if (this.entries.length > 2 * entriesMax) this.entries = this.entries.slice(-entriesMax);
  }

  get newestNumber(): bigint {
    return this.last;
  }

  newest(query: HistoryQuery): NumberedEntry[] {
    return query.limit === 0 ? [] : this.matching(query).slice(-Math.min(query.limit, entriesMax)).reverse();
  }

  since(number: bigint, query: HistoryQuery): HistorySince {
    const entries = this.matching(query).filter((entry) => entry.number > number);
    return { entries: entries.slice(0, Math.min(query.limit, entriesMax)), newest: this.last };
  }

  trim({ ageMaxMs, entriesMax: most }: HistoryRetention, nowMs: number): void {
    const recent = this.entries.filter(({ atMs }) => atMs >= nowMs - ageMaxMs);
    this.entries = recent.slice(Math.max(0, recent.length - most));
  }

  private matching({ kind, id, changesOnly = false }: HistoryQuery): NumberedEntry[] {
    return this.entries.filter(
      (entry) =>
        (kind ?? entry.kind) === entry.kind &&
        (id ?? entry.id) === entry.id &&
        !(changesOnly && observations.includes(entry.event)),
    );
  }
}

/** The sets of all regions. */
export function memorySets(regionOf: (name: string) => Region): SetStore {
  const isDesired = ({ apps, environments, tables }: Region, { kind, id }: SetMember) => {
    if (kind === "app") return apps.has(id);
    return kind === "environment"
      ? environments.get(id) !== undefined
      : tables[kind].get(id)?.desired === "running";
  };
  return {
    async join(name, set, members) {
      const region = regionOf(name);
      for (const member of members) if (isDesired(region, member)) region.sets.join(set, member);
    },
    members: async (name, set) => regionOf(name).sets.members(set),
  };
}
