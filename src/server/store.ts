// What the control plane remembers: per region the desired state of every object, and
// what the region's agent last said. The service and the admin API know only this
// interface, so that memory can be exchanged for a database.
//
// - One counter per region, shared by all kinds, numbers every change from 1 on. A row
//   carries the number of its newest change only: a stream is the current state of all
//   rows in order of version, not a log.
// - A row becomes visible together with its number, and in the order of the numbers.
//   A row that appeared behind a cursor would be seen by nobody until the next replay.
// - A stopped row stays, so that a replay from 0 brings its delete, until the object has
//   been gone for long. Only `remove` makes a row vanish before, which an agent takes for a
//   suspicion and not for an order (K5).
import { CodedError } from "../errors/coded-error.ts";
import type { ErrorCode } from "../errors/error-catalogue.ts";
import type { ReportAgentStateRequest } from "../gen/ctrl/v1/cluster_service_pb.ts";
import type { ApplyMessage, KindName, ReportOf, StateMessage } from "../kinds/kinds.ts";
import { applyState, bareState, deleteState } from "./kind-messages.ts";

export type StoreErrorCode = ErrorCode<"StoreError">;

export class StoreError extends CodedError<"StoreError"> {
  override readonly name = "StoreError";
}

/** Who makes a change, and when. */
export interface Author {
  readonly by: string;
  readonly atMs: number;
}

export interface Row<K extends KindName> {
  readonly id: string;
  readonly spec: ApplyMessage<K>;
  /** "unreadable" is what a newer server wrote and this one does not understand. */
  readonly desired: "running" | "stopped" | "unreadable";
  readonly version: bigint;
  /** The deployment that it belongs to, and is stopped with. */
  readonly deploymentId?: string;
}

/** What a change makes of a row. */
export interface Wanted<K extends KindName> {
  readonly spec: ApplyMessage<K>;
  readonly desired: "running" | "stopped";
  readonly deploymentId?: string;
}

/** The same row twice where nothing changed; undefined twice where there is none. */
export interface Changed<K extends KindName> {
  readonly before: Row<K> | undefined;
  readonly after: Row<K> | undefined;
}

/** What is to become of a row; undefined leaves it alone. Throws to refuse. May be called more than once. */
export type Decide<K extends KindName> = (
  row: Row<K> | undefined,
  /** The one that the options name; undefined where there is none. */
  environment?: StoredEnvironment,
) => Wanted<K> | undefined;

export interface ChangeOptions {
  /** Goes all the way and leaves everything as it was. `after` has the version of before then; 0 without a row. */
  readonly dryRun?: boolean;
  /** The environment that the change is decided on too: it can neither change nor go before the row is written. */
  readonly environmentId?: string;
  /**
   * An object that is stopped afterwards, by this change or before, takes those with it that belong to it, all or none.
   * Those that are newer than the order are for one that is about to come, and stay.
   */
  readonly withOwned?: boolean;
}

export interface Condition {
  /** Rejects with `version_mismatch` when the row has another version; 0 stands for no row, or a stopped one. */
  readonly expectedVersion?: bigint;
}

export interface PutOptions extends Condition {
  /** For a policy, the deployment that it belongs to. */
  readonly deploymentId?: string;
}

/** Of specs in one answer to a stream, of which many are kept at a time. The one that passes it is the last. */
export const changesBytesMax = 1024 * 1024;

export interface Changes<K extends KindName> {
  /** In ascending order of version. */
  readonly rows: readonly Row<K>[];
  /** The counter of the region at the moment of the read. */
  readonly counter: bigint;
  /** Whether there may be more rows behind the last one. */
  readonly isFull: boolean;
}

export interface AgentReport {
  readonly report: ReportAgentStateRequest;
  readonly atMs: number;
}

export interface AgentRecord {
  readonly region: string;
  /** The counter of the region. */
  readonly newestVersion: bigint;
  /** Of each kind; 0 without a row. */
  readonly newestOfKind: Readonly<Record<KindName, bigint>>;
  readonly heartbeatAtMs?: number;
  /** The last report, as it came. */
  readonly state?: AgentReport;
  /** That report with what stays true of those before it; see known-state.ts. */
  readonly known?: AgentReport;
}

/** A row with what was reported on it. */
export interface StoredObject<K extends KindName> {
  readonly row: Row<K>;
  /** The last one; absent before the first. */
  readonly report?: ReportOf<K>;
  /** The version that the row had when the report came; 0 before the first. */
  readonly reportedVersion: bigint;
}

/** A deletion that an agent holds back, by the names that the agent gave it. */
export interface HeldDeletion {
  readonly controller: string;
  readonly key: string;
}

export interface EnvironmentContent {
  readonly workspaceId: string;
  readonly projectId: string;
  /** From the name of each variable to its encrypted value. */
  readonly secrets: ReadonlyMap<string, string>;
}

export interface StoredEnvironment extends EnvironmentContent {
  readonly id: string;
  /** Higher with every change, and never the same again within the region. */
  readonly version: bigint;
}

/** What has a history. */
export type HistoryKind = KindName | "environment";

/** One thing that happened to an object or an environment. */
export interface HistoryEntry extends Author {
  readonly kind: HistoryKind;
  readonly id: string;
  /** The version that the object had then. */
  readonly version: bigint;
  readonly event:
    | "set"
    | "stopped"
    | "removed"
    | "reported"
    | "troubled"
    | "recovered"
    | "released"
    | "secret_set"
    | "secret_unset";
  /** What a report said, in a few words, or the name of a secret; empty for other changes. */
  readonly outcome: string;
}

/** Numbers become visible in their order within a region, so whoever reads on from one misses nothing. */
export interface NumberedEntry extends HistoryEntry {
  readonly number: bigint;
}

export interface HistorySince {
  /** In ascending order of number. */
  readonly entries: readonly NumberedEntry[];
  /** The number of the newest entry of the region, whatever was asked for; 0 before the first. */
  readonly newest: bigint;
}

export interface HistoryQuery {
  readonly kind?: HistoryKind;
  readonly id?: string;
  readonly limit: number;
}

/** What is kept of the history of a region, whichever is less. */
export interface HistoryRetention {
  readonly ageMaxMs: number;
  readonly entriesMax: number;
}

/** Every method with a region rejects with `unknown_region` when it is not registered. */
export interface Store {
  registerRegion(region: string): Promise<void>;
  regions(): Promise<readonly string[]>;

  /**
   * Every change of desired state: decided on the row as it is, with no other change of the region in between.
   * One that leaves every byte as it was takes no version.
   */
  change<K extends KindName>(
    region: string,
    kind: K,
    id: string,
    decide: Decide<K>,
    author: Author,
    options?: ChangeOptions,
  ): Promise<Changed<K>>;
  /** Makes the object wanted as described; gives its version. */
  put<K extends KindName>(
    region: string,
    kind: K,
    spec: ApplyMessage<K>,
    author: Author,
    options?: PutOptions,
  ): Promise<bigint>;
  /** Changes the spec of a row; undefined without a row. */
  edit<K extends KindName>(
    region: string,
    kind: K,
    id: string,
    change: (spec: ApplyMessage<K>) => ApplyMessage<K>,
    author: Author,
    condition?: Condition,
  ): Promise<bigint | undefined>;
  /** Orders the deletion of an object; undefined without a row. */
  stop(
    region: string,
    kind: KindName,
    id: string,
    author: Author,
    condition?: Condition,
  ): Promise<bigint | undefined>;
  /** Forgets a row and what was reported on it, without telling anybody. */
  remove(region: string, kind: KindName, id: string, author: Author): Promise<boolean>;

  row<K extends KindName>(region: string, kind: K, id: string): Promise<Row<K> | undefined>;
  rows<K extends KindName>(region: string, kind: K): Promise<readonly Row<K>[]>;
  /** So many rows at most, and fewer where they are large; none only where there are no more. */
  changesSince<K extends KindName>(
    region: string,
    kind: K,
    cursor: bigint,
    limit: number,
  ): Promise<Changes<K>>;
  object<K extends KindName>(region: string, kind: K, id: string): Promise<StoredObject<K> | undefined>;
  /**
   * In order of id, beginning behind the one given; the empty id begins with the first. So many at most, and fewer
   * where they are large; none only where there are no more.
   */
  objects<K extends KindName>(
    region: string,
    kind: K,
    afterId: string,
    limit: number,
  ): Promise<readonly StoredObject<K>[]>;
  /** Resolves as soon as the counter is not the one seen; rejects with the signal's reason. */
  waitForChange(region: string, counterSeen: bigint, signal: AbortSignal): Promise<void>;

  /** False when no object of the kind has the name in the region, or it has another id than the one given. */
  report<K extends KindName>(
    region: string,
    kind: K,
    object: { readonly name: string; readonly id: string },
    report: ReportOf<K>,
  ): Promise<boolean>;
  reportHeartbeat(region: string, atMs: number): Promise<void>;
  /** Enters into history what got into trouble or out of it, and gives the releases that are for this agent. */
  reportAgent(region: string, report: AgentReport): Promise<readonly HeldDeletion[]>;
  /** Keeps a release until a report no longer lists its deletion. False when the last report lists none. */
  releaseDeletion(region: string, deletion: HeldDeletion, author: Author): Promise<boolean>;

  /** One per region, whether anything was heard of it or not; of one region alone if it is named. */
  agents(region?: string): Promise<readonly AgentRecord[]>;

  /**
   * Decided on the environment as it is; undefined leaves it alone. What changes nothing takes no version. Rejects with
   * `in_use` where it would become somebody else's with a secret in it, or while something of it is wanted. `decide` may
   * be called more than once.
   */
  changeEnvironment(
    region: string,
    id: string,
    decide: (environment: StoredEnvironment | undefined) => EnvironmentContent | undefined,
    author: Author,
  ): Promise<StoredEnvironment | undefined>;
  /** False when there is none; rejects with `in_use` while an object is wanted that is of it, or may be. */
  removeEnvironment(region: string, id: string, author: Author): Promise<boolean>;
  environment(region: string, id: string): Promise<StoredEnvironment | undefined>;
  /** In order of id, beginning behind the one given; the empty id begins with the first. */
  environments(region: string, afterId: string, limit: number): Promise<readonly StoredEnvironment[]>;

  /** What happened, the newest first. Reports are entered when they say something new. */
  history(region: string, query: HistoryQuery): Promise<readonly NumberedEntry[]>;
  /** What happened after the entry with this number. */
  historySince(region: string, number: bigint, query: HistoryQuery): Promise<HistorySince>;
  /**
   * Forgets the history that is older, or more, than is kept, and objects that were stopped and have been gone for as
   * long, from the first call that finds them so; see gone-objects.ts.
   */
  trimHistory(retention: HistoryRetention, nowMs: number): Promise<void>;
}

/** What goes out for a row, by stream and by answer alike. */
export function stateOf<K extends KindName>(kind: K, row: Row<K>): StateMessage<K> {
  if (row.desired === "running") return applyState(kind, row.spec, row.version);
  if (row.desired === "stopped") return deleteState(kind, row.spec, row.version);
  // Left out, the row would hold the cursor of the client below it for ever.
  return bareState(kind, row.version);
}
