// What the control plane remembers: per region the desired state of every object, and
// what the region's agent last said. The service and the admin API know only this
// interface, so that memory can be exchanged for a database.
//
// - One counter per region, shared by all kinds, numbers every change from 1 on. A row
//   carries the number of its newest change only: a stream is the current state of all
//   rows in order of version, not a log.
// - A row becomes visible together with its number, and in the order of the numbers.
//   A row that appeared behind a cursor would be seen by nobody until the next replay.
// - A stopped row stays, so that a replay from 0 brings its delete. Only `remove` makes
//   a row vanish, which an agent takes for a suspicion and not for an order (K5).
import type { ReportAgentStateRequest } from "../gen/ctrl/v1/cluster_service_pb.ts";
import type { ReportDeploymentStatusRequest_Update_Instance } from "../gen/ctrl/v1/deployment_pb.ts";
import type { Health } from "../gen/ctrl/v1/sentinel_pb.ts";
import { type Kind, kinds, type Spec, type State } from "./kinds.ts";

export type StoreErrorCode =
  /** Regions are registered by hand: an agent with a mistyped one must not get an empty world. */
  | "unknown_region"
  /** Another row of the same kind has the name. Stopped rows keep theirs. */
  | "name_taken"
  /** A row keeps its name: under a new one the objects of the old one would be left behind. */
  | "name_changed"
  /** A spec without an id or a name. */
  | "incomplete"
  /** The row was written by a newer server; changing a part of it could lose what cannot be seen here. */
  | "unreadable"
  /** The store cannot be reached. Whether a change was made is not known; making it again is safe. */
  | "unavailable";

export class StoreError extends Error {
  override readonly name = "StoreError";
  readonly code: StoreErrorCode;

  constructor(code: StoreErrorCode, message: string, options?: { readonly cause: unknown }) {
    super(message, options);
    this.code = code;
  }
}

/** Who makes a change, and when. */
export interface Author {
  readonly by: string;
  readonly atMs: number;
}

export interface Row<K extends Kind> {
  readonly id: string;
  readonly spec: Spec<K>;
  /** "unreadable" is what a newer server wrote and this one does not understand. */
  readonly desired: "running" | "stopped" | "unreadable";
  readonly version: bigint;
  /** The deployment that a policy belongs to, and is stopped with. */
  readonly deploymentId?: string;
}

export interface Changes<K extends Kind> {
  /** In ascending order of version. */
  readonly rows: readonly Row<K>[];
  /** The counter of the region at the moment of the read. */
  readonly counter: bigint;
}

export type Instance = ReportDeploymentStatusRequest_Update_Instance;

export interface DeploymentReport {
  /** False once the agent has said that nothing is left in the cluster. */
  readonly exists: boolean;
  readonly instances: readonly Instance[];
  readonly atMs: number;
}

export interface SentinelReport {
  readonly availableReplicas: number;
  readonly health: Health;
  /** Empty when the agent did not say. */
  readonly runningImage: string;
  readonly atMs: number;
}

export interface AgentReport {
  readonly report: ReportAgentStateRequest;
  readonly atMs: number;
}

export interface AgentRecord {
  readonly region: string;
  readonly heartbeatAtMs?: number;
  readonly state?: AgentReport;
}

/** One thing that happened to an object. */
export interface HistoryEntry extends Author {
  readonly kind: Kind;
  readonly id: string;
  /** The version that the object had then. */
  readonly version: bigint;
  readonly event: "set" | "stopped" | "removed" | "reported";
  /** What a report said, in a few words; empty for the other events. */
  readonly outcome: string;
}

export interface HistoryQuery {
  readonly kind?: Kind;
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

  /** Makes the object wanted as described; gives the version of this change. */
  put<K extends Kind>(
    region: string,
    kind: K,
    spec: Spec<K>,
    author: Author,
    deploymentId?: string,
  ): Promise<bigint>;
  /** Changes the spec of a row without losing a change made meanwhile; undefined without a row. */
  edit<K extends Kind>(
    region: string,
    kind: K,
    id: string,
    change: (spec: Spec<K>) => Spec<K>,
    author: Author,
  ): Promise<bigint | undefined>;
  /** Orders the deletion of an object; undefined without a row. */
  stop(region: string, kind: Kind, id: string, author: Author): Promise<bigint | undefined>;
  /** Forgets a row and what was reported on it, without telling anybody. */
  remove(region: string, kind: Kind, id: string, author: Author): Promise<boolean>;

  row<K extends Kind>(region: string, kind: K, id: string): Promise<Row<K> | undefined>;
  rows<K extends Kind>(region: string, kind: K): Promise<readonly Row<K>[]>;
  changesSince<K extends Kind>(region: string, kind: K, cursor: bigint, limit: number): Promise<Changes<K>>;
  /** Resolves as soon as the counter is not the one seen; rejects with the signal's reason. */
  waitForChange(region: string, counterSeen: bigint, signal: AbortSignal): Promise<void>;

  /** False when no deployment of the region has the name. */
  reportDeployment(region: string, k8sName: string, report: DeploymentReport): Promise<boolean>;
  /** False when no sentinel of the region has the name, or it has another id than the one given. */
  reportSentinel(
    region: string,
    sentinel: { readonly k8sName: string; readonly id: string },
    report: SentinelReport,
  ): Promise<boolean>;
  reportHeartbeat(region: string, atMs: number): Promise<void>;
  reportAgent(region: string, report: AgentReport): Promise<void>;

  deploymentReport(region: string, deploymentId: string): Promise<DeploymentReport | undefined>;
  sentinelReport(region: string, sentinelId: string): Promise<SentinelReport | undefined>;
  /** One per region, whether anything was heard of it or not. */
  agents(): Promise<readonly AgentRecord[]>;

  /** What happened, the newest first. Reports are entered when they say something new. */
  history(region: string, query: HistoryQuery): Promise<readonly HistoryEntry[]>;
  /** Forgets the history that is older, or more, than is kept. */
  trimHistory(retention: HistoryRetention, nowMs: number): Promise<void>;
}

/** What goes out for a row, by stream and by answer alike. */
export function stateOf<K extends Kind>(kind: K, row: Row<K>): State<K> {
  if (row.desired === "running") return kinds[kind].applyState(row.spec, row.version);
  if (row.desired === "stopped") return kinds[kind].deleteState(row.spec, row.version);
  // Left out, the row would hold the cursor of the client below it for ever.
  return kinds[kind].bareState(row.version);
}
