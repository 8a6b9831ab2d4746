// The store in memory, for tests, simulation and `krane dev`. No method awaits between reading and writing, so a row and
// its version appear together, and changes become visible in order.

import { ChangeSignal } from "../concurrency/change-signal.ts";
import type { Incarnation } from "../control-plane/incarnation.ts";
import type { App } from "../gen/krane/admin/v1/app_pb.ts";
import {
  type KindName,
  kindNames,
  kindOf,
  kindOfController,
  kindsOwnedBy,
  perKind,
  type ReportOf,
} from "../kinds/kinds.ts";
import { adoptionsFor } from "./allowed-adoptions.ts";
import { withinLimit } from "./buckets.ts";
import { originOf, type StoreIncarnation } from "./client-position.ts";
import { DesiredChanges } from "./desired-changes.ts";
import { assertUnused, environmentNews, keptOwner, removalOf, tenantKinds } from "./environment-rules.ts";
import { findHeld, releasesFor } from "./held-releases.ts";
import { encodeSpec } from "./kind-messages.ts";
import { knownAfter } from "./known-state.ts";
import { heardSince } from "./last-heard.ts";
import { activeIds, appFacts, appsBehind, assertNoAppUses, changeApp, insertApp } from "./memory-apps.ts";
import { MemoryHostnames } from "./memory-hostnames.ts";
import {
  allowAdoptions,
  emptyRegion,
  forget,
  memorySets,
  type Region,
  recordReport,
  storedObject,
  trimGone,
} from "./memory-region.ts";
import { repairNews } from "./repair-news.ts";
import { isOlderReport, type ReceivedReport, type ReportRank } from "./report-rank.ts";
import { checkIdentity, isSame, unknownRegion } from "./row-rules.ts";
import type { RowTable } from "./row-table.ts";
import { MemorySessions, type SessionStore } from "./sessions.ts";
import { type Standby, withStandby } from "./standbys.ts";
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
  changesBytesMax,
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
} from "./store.ts";
import { troubleNews } from "./trouble-news.ts";

const nobody: Author = { by: "", atMs: 0 };

export class MemoryStore extends DesiredChanges implements Store {
  readonly sessions: SessionStore = new MemorySessions();
  readonly sets = memorySets((name) => this.region(name));
  private readonly regionsByName = new Map<string, Region>();
  readonly hostnames = new MemoryHostnames(this.regionsByName);
  private current: StoreIncarnation | undefined;

  /** Without an incarnation, it behaves as a control plane that names none. */
  constructor(incarnation?: StoreIncarnation) {
    super();
    this.current = incarnation;
  }

  async incarnation(): Promise<StoreIncarnation | undefined> {
    return this.current;
  }

  async startIncarnation({ replaces, above }: NewIncarnation): Promise<Incarnation | undefined> {
    const { current } = this;
    if (current === undefined || current.isReplica || current.id !== replaces) return current;
    const ordinal = (above > current.ordinal ? above : current.ordinal) + 1n;
    this.current = { ordinal, id: `${originOf(current)}-${ordinal}`, parent: current.id, isReplica: false };
    for (const { changed } of this.regionsByName.values()) changed.wakeAll();
    return this.current;
  }

  async registerRegion(region: string): Promise<void> {
    if (region === "") throw new StoreError("incomplete", "a region needs a name");
    if (this.regionsByName.has(region)) return;
    this.regionsByName.set(region, { ...emptyRegion(), changed: new ChangeSignal() });
  }

  async regions(): Promise<readonly string[]> {
    return [...this.regionsByName.keys()];
  }

  async change<K extends KindName>(
    region: string,
    kind: K,
    id: string,
    decide: Decide<K>,
    author: Author,
    { dryRun = false, environmentId = "", withOwned = false }: ChangeOptions = {},
  ): Promise<Changed<K>> {
    const before = this.table(region, kind).get(id);
    const wanted = decide(before, this.region(region).environments.get(environmentId));
    if (wanted === undefined || (before !== undefined && isSame(kind, before, wanted))) {
      if (withOwned && !dryRun) this.stopOwnedBy(region, kind, before, author);
      return { before, after: before };
    }
    const row = { id, ...wanted };
    if (dryRun) {
      this.checkRow(region, kind, row);
      return { before, after: { ...row, version: before?.version ?? 0n } };
    }
    const after = { ...row, version: this.insert(region, kind, row, author) };
    if (withOwned) this.stopOwnedBy(region, kind, after, author);
    return { before, after };
  }

  async remove(region: string, kind: KindName, id: string, author: Author): Promise<boolean> {
    const content = this.region(region);
    const row = content.tables[kind].get(id);
    if (row !== undefined) {
      content.history.add({ ...author, kind, id, version: row.version, event: "removed", outcome: "" });
    }
    forget(content, kind, id);
    return row !== undefined;
  }

  async row<K extends KindName>(region: string, kind: K, id: string): Promise<Row<K> | undefined> {
    return this.table(region, kind).get(id);
  }

  async find<K extends KindName>(region: string, kind: K, id: string): Promise<FoundRow<K>> {
    const { counter } = this.region(region);
    return { row: this.table(region, kind).get(id), counter, ...this.named() };
  }

  async rows<K extends KindName>(region: string, kind: K): Promise<readonly Row<K>[]> {
    return this.table(region, kind).current();
  }

  async object<K extends KindName>(
    region: string,
    kind: K,
    id: string,
  ): Promise<StoredObject<K> | undefined> {
    const row = this.table(region, kind).get(id);
    return row && storedObject(this.region(region), kind, row);
  }

  async objects<K extends KindName>(
    region: string,
    kind: K,
    afterId: string,
    limit: number,
    ids?: readonly string[],
  ): Promise<readonly StoredObject<K>[]> {
    return this.table(region, kind)
      .current()
      .filter(({ id }) => id > afterId && ids?.includes(id) !== false)
      .sort((a, b) => (a.id < b.id ? -1 : 1))
      .slice(0, limit)
      .map((row) => storedObject(this.region(region), kind, row));
  }

  async changesSince<K extends KindName>(
    region: string,
    kind: K,
    cursor: bigint,
    limit: number,
  ): Promise<Changes<K>> {
    const found = this.table(region, kind).after(cursor, limit);
    let bytes = 0;
    const last = found.findIndex(({ spec }) => {
      bytes += encodeSpec(kind, spec).length;
      return bytes >= changesBytesMax;
    });
    return {
      rows: last === -1 ? found : found.slice(0, last + 1),
      counter: this.region(region).counter,
      isFull: found.length === limit || last !== -1,
      ...this.named(),
    };
  }

  async digest(region: string, kind: KindName, knownSum?: bigint): Promise<KindDigest> {
    const { sums } = this.table(region, kind);
    const sum = sums.whole;
    return {
      sum,
      ...(sum !== knownSum && { buckets: sums.all() }),
      newestVersion: this.table(region, kind).newest(),
      counter: this.region(region).counter,
      ...this.named(),
    };
  }

  async contents(region: string, kind: KindName, buckets: readonly number[]): Promise<BucketContents> {
    const found = this.table(region, kind).buckets(buckets);
    return { buckets: withinLimit(found), counter: this.region(region).counter, ...this.named() };
  }

  async verifyDigests(region: string): Promise<readonly KindName[]> {
    return kindNames.filter((kind) => !this.table(region, kind).verifyDigest());
  }

  private named(): Pick<FoundRow<KindName>, "incarnation"> {
    return this.current === undefined ? {} : { incarnation: this.current };
  }

  async waitForChange(region: string, counterSeen: bigint, signal: AbortSignal): Promise<void> {
    const { counter, changed } = this.region(region);
    if (counter === counterSeen) await changed.wait(signal);
  }

  async report<K extends KindName>(
    region: string,
    kind: K,
    { name, id: expectedId }: { readonly name: string; readonly id: string },
    report: ReportOf<K>,
    rank?: ReportRank,
  ): Promise<boolean> {
    const content = this.region(region);
    const id = content.tables[kind].idOfName(name);
    if (id === undefined || (expectedId !== "" && expectedId !== id)) return false;
    const ranked = { rank, atMs: report.atMs };
    const last = content.ranks.get(`${kind} ${id}`);
    if (last !== undefined && isOlderReport(ranked, last)) return true;
    content.ranks.set(`${kind} ${id}`, ranked);
    const kept = content.reports.replace(kind, id, report);
    recordReport(content, kind, id, kept);
    return true;
  }

  reportMany<K extends KindName>(
    region: string,
    kind: K,
    received: readonly ReceivedReport<ReportOf<K>>[],
  ): Promise<readonly boolean[]> {
    return Promise.all(received.map((one) => this.report(region, kind, one, one.report, one.rank)));
  }

  async reportHeartbeat(region: string, atMs: number): Promise<void> {
    const content = this.region(region);
    content.agent = { ...content.agent, ...heardSince(content.agent, atMs), heartbeatAtMs: atMs };
  }

  async reportStandby(region: string, standby: Standby): Promise<void> {
    const content = this.region(region);
    content.agent = { ...content.agent, standbys: withStandby(content.agent.standbys, standby) };
  }

  async reportAgent(region: string, state: AgentReport): Promise<readonly HeldDeletion[]> {
    const content = this.region(region);
    const known = knownAfter(content.agent, state, content.counter);
    const news = [...repairNews(content.agent.state, state), ...troubleNews(content.agent.known, known)];
    for (const entry of news) content.history.add(entry);
    content.agent = { ...content.agent, ...heardSince(content.agent, state.atMs), state, known };
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
    const kind = kindOfController(controller)?.name;
    if (kind !== undefined) {
      const version = content.tables[kind].get(id)?.version ?? 0n;
      content.history.add({ ...author, kind, id, version, event: "released", outcome: "" });
    }
    return true;
  }

  async adoptObjects(
    region: string,
    objects: readonly StrangerRef[],
    author: Author,
  ): Promise<readonly StrangerRef[]> {
    return allowAdoptions(this.region(region), objects, author);
  }

  async adoptionsFor(region: string, report: AgentReport): Promise<readonly StrangerRef[]> {
    const content = this.region(region);
    content.adoptions = adoptionsFor(content.adoptions, report);
    return content.adoptions;
  }

  async agents(region?: string): Promise<readonly AgentRecord[]> {
    return [...this.regionsByName]
      .filter(([name]) => (region ?? name) === name)
      .map(([name, { agent, counter, tables }]) => {
        const newestOfKind = perKind((kind) => tables[kind.name].newest());
        return { region: name, newestVersion: counter, newestOfKind, ...agent };
      });
  }

  async marks(): Promise<readonly RegionMark[]> {
    return [...this.regionsByName].map(([region, { agent, history }]) => {
      const { heartbeatAtMs = 0, state } = agent;
      return { region, newestEntry: history.newestNumber, heartbeatAtMs, stateAtMs: state?.atMs ?? 0 };
    });
  }

  async changeEnvironment(
    region: string,
    id: string,
    decide: (environment: StoredEnvironment | undefined) => EnvironmentContent | undefined,
    author: Author,
  ): Promise<StoredEnvironment | undefined> {
    const { environments, history } = this.region(region);
    const before = environments.get(id);
    const after = environments.change(id, (environment) => {
      const wanted = decide(environment);
      const kept = wanted && keptOwner(environment, wanted);
      if (kept !== undefined) this.assertUnused(region, id, kept);
      return wanted;
    });
    if (after !== undefined && after !== before) {
      for (const entry of environmentNews(before, after, author)) history.add(entry);
    }
    return after;
  }

  async removeEnvironment(region: string, id: string, author: Author): Promise<boolean> {
    this.assertUnused(region, id);
    const { environments, history } = this.region(region);
    const before = environments.get(id);
    if (before === undefined) return false;
    history.add(removalOf(before, author));
    return environments.delete(id);
  }

  async environment(region: string, id: string): Promise<StoredEnvironment | undefined> {
    return this.region(region).environments.get(id);
  }

  async environments(region: string, afterId: string, limit: number): Promise<readonly StoredEnvironment[]> {
    return this.region(region).environments.behind(afterId, limit);
  }

  async changeApp(
    region: string,
    id: string,
    decide: DecideApp,
    author: Author,
    options: ChangeAppOptions = {},
  ): Promise<ChangedApp> {
    return changeApp(this.region(region), id, decide, author, options, (change, dryRun) => {
      const { kind } = change;
      const row = { id: change.id, ...change.decide(this.table(region, kind).get(change.id)) };
      this.checkRow(region, kind, row);
      return () => {
        const after = { ...row, version: dryRun ? 0n : this.insert(region, kind, row, author) };
        if (!dryRun) this.stopOwnedBy(region, kind, after, author);
        return { kind, row: after };
      };
    });
  }

  async app(region: string, id: string): Promise<AppFacts> {
    return appFacts(this.region(region), id);
  }

  async apps(region: string, afterId: string, limit: number): Promise<readonly AppFacts[]> {
    return appsBehind(this.region(region), afterId, limit);
  }

  async activeApps(): Promise<readonly { readonly region: string; readonly id: string }[]> {
    return [...this.regionsByName].flatMap(([region, content]) =>
      activeIds(content).map((id) => ({ region, id })),
    );
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
      trimGone(content, nowMs, retention.ageMaxMs);
    }
  }

  /** The region as after a restore from an empty backup: it exists but is empty. */
  clear(region: string): void {
    Object.assign(this.region(region), emptyRegion());
    this.region(region).changed.wakeAll();
  }

  /** Continues counting from here. */
  setCounter(region: string, counter: bigint): void {
    this.region(region).counter = counter;
    this.region(region).changed.wakeAll();
  }

  /** Gives a row the next version and wakes the streams, before anything else can run. */
  insert<K extends KindName>(
    name: string,
    kind: K,
    change: Omit<Row<K>, "version">,
    author: Author = nobody,
  ): bigint {
    const region = this.region(name);
    this.checkRow(name, kind, change);
    region.counter += 1n;
    const version = region.counter;
    const table = this.table(name, kind);
    const before = table.get(change.id);
    const createdAtMs = before?.desired === "running" ? before.createdAtMs : author.atMs;
    table.put({ ...change, version, ...(createdAtMs !== undefined && { createdAtMs }) });
    const event = change.desired === "stopped" ? "stopped" : "set";
    region.history.add({ ...author, kind, id: change.id, version, event, outcome: "" });
    region.changed.wakeAll();
    return region.counter;
  }

  /** Stores a row unchanged, with the version it has, without waking any stream. */
  insertSilently<K extends KindName>(region: string, kind: K, row: Row<K>): void {
    this.table(region, kind).put(row);
  }

  insertAppSilently = (region: string, app: App): void => insertApp(this.region(region), app);

  /** The number of streams that wait for the next change of a region. */
  waitingCount(region: string): number {
    return this.region(region).changed.size;
  }

  private assertUnused(region: string, environmentId: string, refused?: string): void {
    for (const kind of tenantKinds)
      assertUnused(environmentId, kind, this.table(region, kind).current(), refused);
    assertNoAppUses(this.region(region), environmentId, refused);
  }

  private stopOwnedBy(
    region: string,
    kind: KindName,
    owner: Row<KindName> | undefined,
    author: Author,
  ): void {
    if (owner?.desired !== "stopped") return;
    for (const { name } of kindsOwnedBy(kind)) {
      for (const { version, ...row } of this.table(region, name).current()) {
        const isOlder = row.deploymentId === owner.id && version < owner.version;
        if (isOlder && row.desired === "running")
          this.insert(region, name, { ...row, desired: "stopped" }, author);
      }
    }
  }

  private checkRow<K extends KindName>(region: string, kind: K, row: Omit<Row<K>, "version">): void {
    const { id, spec, desired } = row;
    const table = this.table(region, kind);
    const before = table.get(id);
    checkIdentity(kind, id, spec, {
      nameHolder: table.idOfName(kindOf(kind).uniqueNameOf(spec)),
      nameBefore: before && kindOf(kind).uniqueNameOf(before.spec),
    });
    if ("hostnames" in spec && desired !== "stopped") this.hostnames.check(this.region(region), spec);
  }

  private region(name: string): Region {
    const region = this.regionsByName.get(name);
    if (region === undefined) throw unknownRegion(name);
    return region;
  }

  private table<K extends KindName>(region: string, kind: K): RowTable<K> {
    return this.region(region).tables[kind];
  }
}
