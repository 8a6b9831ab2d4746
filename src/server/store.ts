// The interface of the control plane's storage: per region the desired state of every object and the last reports of the
// region's agent. The services use only this interface, so that memory and PostgreSQL are interchangeable.
//
// - One counter per region, shared by all kinds, numbers every change, starting at 1. A row
//   carries only the number of its newest change: a stream is the current state of all rows
//   in order of version, not a log.
// - A row becomes visible together with its number, and in the order of the numbers. A row
//   that appeared behind a cursor would be missed until the next replay.
// - A stopped row stays, so that a replay from 0 delivers its delete, until the object has
//   been gone for long. Only `remove` drops a row earlier; an agent does not treat a missing
//   row as an order to delete (K5).
import type { Incarnation } from "../control-plane/incarnation.ts";
import { CodedError } from "../errors/coded-error.ts";
import type { ErrorCode } from "../errors/error-catalogue.ts";
import type { ReportAgentStateRequest } from "../gen/ctrl/v1/cluster_service_pb.ts";
import type { App } from "../gen/krane/admin/v1/app_pb.ts";
import type { ApplyMessage, KindName, ReportOf, StateMessage } from "../kinds/kinds.ts";
import type { BucketContent } from "./buckets.ts";
import type { StoreIncarnation } from "./client-position.ts";
import type { HostnameStore } from "./hostnames.ts";
import { applyState, bareState, deleteState, type StateContent } from "./kind-messages.ts";
import type { ServerChannel } from "./logs/server-channel.ts";
import type { ReceivedReport, ReportRank } from "./report-rank.ts";
import type { SessionStore } from "./sessions.ts";
import type { SetStore } from "./sets.ts";
import type { Standby } from "./standbys.ts";

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
  /** "unreadable": written by a newer server, and not understood by this one. */
  readonly desired: "running" | "stopped" | "unreadable";
  readonly version: bigint;
  /** The deployment that it belongs to and is stopped with. */
  readonly deploymentId?: string;
  /** Of its content, for digests; absent on a row that was never stored. */
  readonly contentHash?: Uint8Array;
  /** The app that it is a release or the route of. */
  readonly appId?: string;
  /** When it was first wanted, or wanted again after its deletion; absent if that was not noted. */
  readonly createdAtMs?: number;
}

/** The new content of a row. */
export interface Wanted<K extends KindName> {
  readonly spec: ApplyMessage<K>;
  readonly desired: "running" | "stopped";
  readonly deploymentId?: string;
  readonly appId?: string;
}

/** The same row twice if nothing changed; undefined twice if it does not exist. */
export interface Changed<K extends KindName> {
  readonly before: Row<K> | undefined;
  readonly after: Row<K> | undefined;
}

/** Returns the new content of a row; undefined leaves it alone. Throws to refuse. May be called more than once. */
export type Decide<K extends KindName> = (
  row: Row<K> | undefined,
  /** The environment named in the options; undefined if it does not exist. */
  environment?: StoredEnvironment,
) => Wanted<K> | undefined;

export interface ChangeOptions {
  /** Runs all checks but writes nothing. `after` then has the previous version; 0 without a row. */
  readonly dryRun?: boolean;
  /** The environment that the decision also depends on: it cannot change or be deleted before the row is written. */
  readonly environmentId?: string;
  /**
   * If the object is stopped afterwards, by this change or before, the objects that belong to it are stopped too, all
   * or none. Those newer than its deletion are for a successor that is about to be created, and stay.
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

/** Limits the bytes of specs in one batch of a stream: many batches are held at a time. The last spec may exceed it. */
export const changesBytesMax = 1024 * 1024;

export interface Changes<K extends KindName> {
  /** In ascending order of version. */
  readonly rows: readonly Row<K>[];
  /** The region's counter at the time of the read. */
  readonly counter: bigint;
  /** Whether there may be more rows after the last one. */
  readonly isFull: boolean;
  /** Of the same snapshot; undefined if the store names none. */
  readonly incarnation?: StoreIncarnation | undefined;
}

/** A row, and what it was read from, in one snapshot. */
export interface FoundRow<K extends KindName> {
  readonly row: Row<K> | undefined;
  /** The region's counter. */
  readonly counter: bigint;
  /** Undefined if the store names none. */
  readonly incarnation?: StoreIncarnation | undefined;
}

/** The digest of what is wanted of one kind (model/digest.ts), and what it was read from, in one snapshot. */
export interface KindDigest extends Omit<FoundRow<KindName>, "row"> {
  /** Of all buckets. */
  readonly sum: bigint;
  /** Absent if the sum is the known one. */
  readonly buckets?: readonly bigint[];
  /** The newest version of any row of the kind. */
  readonly newestVersion: bigint;
}

/** The rows in some buckets, and what they were read from, in one snapshot. */
export interface BucketContents extends Omit<FoundRow<KindName>, "row"> {
  /** In ascending order. */
  readonly buckets: readonly BucketContent[];
}

/** A reason to start a new incarnation. */
export interface NewIncarnation {
  /** The id of the incarnation to replace; nothing happens if that is no longer the current one. */
  readonly replaces: string;
  /** The new ordinal is higher than this. */
  readonly above: bigint;
  readonly reason: "rolled back" | "requested";
  /** What an agent has seen that this history does not contain. Checked again, and such starts are rate-limited. */
  readonly seen?: SeenVersions;
}

/** The versions that an agent has seen in an incarnation. */
export interface SeenVersions {
  readonly region: string;
  readonly incarnationId: string;
  /** The highest one. */
  readonly version: bigint;
  /** The version of one object. */
  readonly row?: { readonly kind: KindName; readonly id: string; readonly version: bigint };
}

export interface AgentReport {
  readonly report: ReportAgentStateRequest;
  readonly atMs: number;
}

export interface AgentRecord {
  readonly region: string;
  /** The region's counter. */
  readonly newestVersion: bigint;
  /** Per kind; 0 without a row. */
  readonly newestOfKind: Readonly<Record<KindName, bigint>>;
  readonly heartbeatAtMs?: number;
  /** The last heard first; see standbys.ts. */
  readonly standbys?: readonly Standby[];
  /** When it was first heard after its last silence, or after an outage of the store; see last-heard.ts. */
  readonly heardSinceMs?: number;
  /** The last report, as received. */
  readonly state?: AgentReport;
  /** That report, merged with what is still true of earlier ones; see known-state.ts. */
  readonly known?: AgentReport;
}

/** What tells that something in a region has changed. */
export interface RegionMark {
  readonly region: string;
  /** The number of the newest entry of its history; 0 before the first. */
  readonly newestEntry: bigint;
  /** 0 for never, as below. */
  readonly heartbeatAtMs: number;
  readonly stateAtMs: number;
}

/** A row and its last report. */
export interface StoredObject<K extends KindName> {
  readonly row: Row<K>;
  /** Absent before the first report. */
  readonly report?: ReportOf<K>;
  /** The row's version when the report arrived; 0 before the first. */
  readonly reportedVersion: bigint;
}

/** A deletion that an agent holds back, under the agent's own names. */
export interface HeldDeletion {
  readonly controller: string;
  readonly key: string;
}

/** An object with the seal of another krane, under the agent's own names. */
export interface StrangerRef {
  readonly controller: string;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

export interface EnvironmentContent {
  readonly workspaceId: string;
  readonly projectId: string;
  /** Maps each variable's name to its encrypted value. */
  readonly secrets: ReadonlyMap<string, string>;
}

export interface StoredEnvironment extends EnvironmentContent {
  readonly id: string;
  /** Grows with every change, and never repeats within the region. */
  readonly version: bigint;
}

/** An app, and what the decisions about it depend on. */
export interface AppFacts {
  /** With the encrypted secrets of its releases; undefined if it does not exist. */
  readonly app: App | undefined;
  /** Its deployments that are desired, ordered by id. */
  readonly deployments: readonly StoredObject<"deployment">[];
  /** Its route, if that is desired. */
  readonly route?: StoredObject<"route"> | undefined;
  /** The environment that it belongs to; undefined if that does not exist. */
  readonly environment: StoredEnvironment | undefined;
  /** The ids of deployments of a deleted app with the same id; empty if the app exists. */
  readonly leftIds: readonly string[];
}

/** Returns the new content of an app; undefined leaves it alone, and "removed" forgets it. Throws to refuse. May be called more than once. */
export type DecideApp = (facts: AppFacts) => App | "removed" | undefined;

export interface ChangeAppOptions {
  /** Runs all checks but writes nothing. */
  readonly dryRun?: boolean;
  /** The environment of an app that does not exist yet. */
  readonly environmentId?: string;
}

/** The same app twice if nothing changed. */
export interface ChangedApp {
  readonly before: App | undefined;
  /** Undefined if it does not exist, or no longer. */
  readonly after: App | undefined;
  /** The deployments whose deletion it ordered. */
  readonly stopped: readonly Row<"deployment">[];
}

/** The kinds that have a history. */
export type HistoryKind = KindName | "environment" | "app";

/** One event in the history of an object, an environment or an app. */
export interface HistoryEntry extends Author {
  readonly kind: HistoryKind;
  readonly id: string;
  /** The object's version at that time. */
  readonly version: bigint;
  readonly event:
    | "set"
    | "stopped"
    | "removed"
    | "reported"
    | "troubled"
    | "recovered"
    | "repaired"
    | "released"
    | "adopted"
    | "secret_set"
    | "secret_unset"
    | "paused"
    | "resumed"
    | "release_started"
    | "release_current"
    | "release_draining"
    | "release_failed"
    | "release_ended";
  /** A short summary of a report, the name of a secret, of an adopted object or of a release; empty for other changes. */
  readonly outcome: string;
}

/** Numbers become visible in order within a region, so a reader that continues from one misses nothing. */
export interface NumberedEntry extends HistoryEntry {
  readonly number: bigint;
}

export interface HistorySince {
  /** In ascending order of number. */
  readonly entries: readonly NumberedEntry[];
  /** The number of the region's newest entry, regardless of the filter; 0 before the first. */
  readonly newest: bigint;
}

export interface HistoryQuery {
  readonly kind?: HistoryKind;
  readonly id?: string;
  /** Leaves out what agents observed. */
  readonly changesOnly?: boolean;
  readonly limit: number;
}

/** What agents observe, as opposed to what somebody changes. */
export const observations: readonly HistoryEntry["event"][] = ["reported", "troubled", "recovered"];

/** Limits of a region's history, whichever is reached first. */
export interface HistoryRetention {
  readonly ageMaxMs: number;
  readonly entriesMax: number;
}

/** Every method with a region rejects with `unknown_region` when it is not registered. */
export interface Store {
  registerRegion(region: string): Promise<void>;
  regions(): Promise<readonly string[]>;

  /** The incarnation of its history, at most a second old; undefined if it names none. */
  incarnation(): Promise<StoreIncarnation | undefined>;
  /** Starts a new incarnation, unless that is not allowed now; returns the current one. */
  startIncarnation(start: NewIncarnation): Promise<Incarnation | undefined>;

  /**
   * The primitive behind every change of desired state: decided on the current row, with no other change of the region
   * in between. A change that leaves every byte as it was takes no version.
   */
  change<K extends KindName>(
    region: string,
    kind: K,
    id: string,
    decide: Decide<K>,
    author: Author,
    options?: ChangeOptions,
  ): Promise<Changed<K>>;
  /** Sets the desired spec of an object; returns its version. */
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
  /** Drops a row and its reports without notifying any stream. */
  remove(region: string, kind: KindName, id: string, author: Author): Promise<boolean>;

  row<K extends KindName>(region: string, kind: K, id: string): Promise<Row<K> | undefined>;
  find<K extends KindName>(region: string, kind: K, id: string): Promise<FoundRow<K>>;
  rows<K extends KindName>(region: string, kind: K): Promise<readonly Row<K>[]>;
  /** Kept up to date by every change. Without buckets if the sum is the known one. */
  digest(region: string, kind: KindName, knownSum?: bigint): Promise<KindDigest>;
  /** The buckets with these numbers, the lowest first, each complete; not all of them if they have too many rows. */
  contents(region: string, kind: KindName, buckets: readonly number[]): Promise<BucketContents>;
  /** Compares the region's digests with a scan of its rows, and corrects them. Resolves with the kinds that were wrong. */
  verifyDigests(region: string): Promise<readonly KindName[]>;
  /** At most `limit` rows, fewer if they are large; empty only at the end. */
  changesSince<K extends KindName>(
    region: string,
    kind: K,
    cursor: bigint,
    limit: number,
  ): Promise<Changes<K>>;
  object<K extends KindName>(region: string, kind: K, id: string): Promise<StoredObject<K> | undefined>;
  /**
   * Ordered by id, starting after the given one; the empty id starts at the first. At most `limit` objects, fewer if
   * they are large; empty only at the end. With `ids`, only of those.
   */
  objects<K extends KindName>(
    region: string,
    kind: K,
    afterId: string,
    limit: number,
    ids?: readonly string[],
  ): Promise<readonly StoredObject<K>[]>;
  /** Resolves as soon as the counter differs from the one seen; rejects with the signal's reason. */
  waitForChange(region: string, counterSeen: bigint, signal: AbortSignal): Promise<void>;

  /** False when no object of the kind has the name in the region, or it has a different id than the one given. */
  report<K extends KindName>(
    region: string,
    kind: K,
    object: { readonly name: string; readonly id: string },
    report: ReportOf<K>,
    rank?: ReportRank,
  ): Promise<boolean>;
  /** The same for several at once, in the order in which they were observed. Either all are stored that can be, or none. */
  reportMany<K extends KindName>(
    region: string,
    kind: K,
    received: readonly ReceivedReport<ReportOf<K>>[],
  ): Promise<readonly boolean[]>;
  reportHeartbeat(region: string, atMs: number): Promise<void>;
  reportStandby(region: string, standby: Standby): Promise<void>;
  /** Adds new and resolved troubles to history, and returns the releases for this agent. */
  reportAgent(region: string, report: AgentReport): Promise<readonly HeldDeletion[]>;
  /** Keeps a release until a report no longer lists its deletion. False when the last report does not list it. */
  releaseDeletion(region: string, deletion: HeldDeletion, author: Author): Promise<boolean>;
  /**
   * Keeps adoptions until a report no longer lists their objects. Returns those that the last report lists as adoptable;
   * the others are ignored.
   */
  adoptObjects(
    region: string,
    objects: readonly StrangerRef[],
    author: Author,
  ): Promise<readonly StrangerRef[]>;
  /** The adoptions for the agent that sent this report. */
  adoptionsFor(region: string, report: AgentReport): Promise<readonly StrangerRef[]>;

  /** One per region; cheap enough to be read every second. */
  marks(): Promise<readonly RegionMark[]>;
  readonly sessions: SessionStore;
  readonly sets: SetStore;
  readonly hostnames: HostnameStore;
  /** To the other servers on the same storage; absent if there cannot be any. */
  readonly channel?: ServerChannel | undefined;
  /** One per region, whether its agent ever connected or not; only the given region if one is named. */
  agents(region?: string): Promise<readonly AgentRecord[]>;

  /**
   * Decided on the current environment, maybe more than once; undefined leaves it alone. Without effect it takes no version.
   * Rejects with `in_use` if the owner would change while the environment has a secret or a desired object uses it.
   */
  changeEnvironment(
    region: string,
    id: string,
    decide: (environment: StoredEnvironment | undefined) => EnvironmentContent | undefined,
    author: Author,
  ): Promise<StoredEnvironment | undefined>;
  /** False when it does not exist; rejects with `in_use` while a desired object uses it or may use it. */
  removeEnvironment(region: string, id: string, author: Author): Promise<boolean>;
  environment(region: string, id: string): Promise<StoredEnvironment | undefined>;
  /** Ordered by id, starting after the given one; the empty id starts at the first. */
  environments(region: string, afterId: string, limit: number): Promise<readonly StoredEnvironment[]>;

  /**
   * Decided on the current app. Its desired deployments become those of its releases that have not ended, and its route leads to
   * the current one, in the same transaction. Without effect it takes no version. Rejects if a name or a hostname is not free.
   */
  changeApp(
    region: string,
    id: string,
    decide: DecideApp,
    author: Author,
    options?: ChangeAppOptions,
  ): Promise<ChangedApp>;
  app(region: string, id: string): Promise<AppFacts>;
  /** Ordered by id, starting after the given one; the empty id starts at the first. Empty only at the end. */
  apps(region: string, afterId: string, limit: number): Promise<readonly AppFacts[]>;
  /** The apps of all regions that time alone may change. */
  activeApps(): Promise<readonly { readonly region: string; readonly id: string }[]>;

  /** History, newest first. Reports are added when they say something new. */
  history(region: string, query: HistoryQuery): Promise<readonly NumberedEntry[]>;
  /** The history after the entry with this number. */
  historySince(region: string, number: bigint, query: HistoryQuery): Promise<HistorySince>;
  /**
   * Purges history beyond its limits, and stopped objects that have been gone for as long, counted from the first call
   * that finds them gone; see gone-objects.ts.
   */
  trimHistory(retention: HistoryRetention, nowMs: number): Promise<void>;
}

/** The message for a row, the same in streams and in Get responses. */
export function stateOf<K extends KindName>(kind: K, row: Row<K>): StateMessage<K> {
  if (row.desired === "running") return applyState(kind, row.spec, row.version, contentOf(row));
  if (row.desired === "stopped") return deleteState(kind, row.spec, row.version);
  // If the row were left out, the client's cursor would stay below it for ever.
  return bareState(kind, row.version);
}

/** What identifies the content of a wanted row. */
export function contentOf({ id, contentHash }: Row<KindName>): StateContent | undefined {
  return contentHash && { id, hash: contentHash };
}
