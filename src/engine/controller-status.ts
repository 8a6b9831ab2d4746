// Builds the status messages of a controller and its objects, for `krane` commands and the control plane.
import { create } from "@bufbuild/protobuf";
import type { CircuitState } from "../concurrency/circuit-breaker.ts";
import type { WorkQueueCounts } from "../concurrency/work-queue.ts";
import type { StreamStatus } from "../control-plane/desired-stream.ts";
import type { ServerHistory } from "../control-plane/server-history.ts";
import {
  type BlockedDeletion,
  BlockedDeletionSchema,
  BreakerStatus_State,
  type ControllerStatus,
  ControllerStatusSchema,
  type ObjectStatus,
  ObjectStatus_Desired,
  ObjectStatus_Outcome,
  ObjectStatusSchema,
  type Repair,
  StreamStatus_State,
} from "../gen/krane/v1/agent_pb.ts";
import type { ControllerDefinition } from "./controller-definition.ts";
import type { SuspectedDeletion } from "./deletion-guard.ts";
import type { DesiredEntry, DesiredStore } from "./desired-store.ts";
import { isTroubled, type ObjectStatuses, type Outcome, type OutcomeRecord } from "./object-status.ts";
import type { ResyncResult } from "./resync.ts";
import type { SealCounts } from "./seal-counts.ts";
import type { SettledVersions } from "./version-cursor.ts";
import type { KindStatus } from "./watched-kind.ts";

const streamStates: Readonly<Record<StreamStatus["state"], StreamStatus_State>> = {
  idle: StreamStatus_State.UNSPECIFIED,
  connecting: StreamStatus_State.CONNECTING,
  open: StreamStatus_State.OPEN,
  waiting: StreamStatus_State.BACKING_OFF,
  unsupported: StreamStatus_State.UNSUPPORTED,
  stopped: StreamStatus_State.STOPPED,
};

const breakerStates: Readonly<Record<CircuitState, BreakerStatus_State>> = {
  closed: BreakerStatus_State.CLOSED,
  open: BreakerStatus_State.OPEN,
  halfopen: BreakerStatus_State.HALF_OPEN,
};

const outcomes: Readonly<Record<Outcome, ObjectStatus_Outcome>> = {
  pending: ObjectStatus_Outcome.PENDING,
  applied: ObjectStatus_Outcome.APPLIED,
  unchanged: ObjectStatus_Outcome.UNCHANGED,
  deleted: ObjectStatus_Outcome.DELETED,
  parked: ObjectStatus_Outcome.PARKED,
  retrying: ObjectStatus_Outcome.RETRYING,
  conflict: ObjectStatus_Outcome.CONFLICT,
  blocked: ObjectStatus_Outcome.BLOCKED,
};

/** Outcomes that settle a version without applying it. */
const refusals: ReadonlySet<Outcome> = new Set(["parked", "conflict"]);

export interface ControllerFacts {
  readonly name: string;
  readonly stream: StreamStatus;
  readonly history: Pick<ServerHistory, "current" | "ignoredCount">;
  readonly cursor: bigint;
  readonly settled: SettledVersions;
  readonly queue: WorkQueueCounts;
  readonly breaker: CircuitState;
  readonly kinds: readonly KindStatus[];
  readonly resync: ResyncResult | undefined;
  readonly objects: number;
  readonly parked: number;
  readonly retrying: number;
  readonly conflicts: number;
  readonly blocked: number;
  readonly failing: number;
  readonly seals: readonly SealCounts[];
  readonly sealKeyId: string;
  readonly originalPods: number;
  readonly repairs: readonly Repair[];
}

export function controllerStatusMessage(facts: ControllerFacts): ControllerStatus {
  const { stream, queue, resync } = facts;
  return create(ControllerStatusSchema, {
    name: facts.name,
    stream: {
      state: streamStates[stream.state],
      cursor: facts.cursor,
      settledUpTo: facts.settled.upTo,
      unsettled: [...facts.settled.except],
      lastError: stream.lastError?.message ?? "",
      lastErrorCode: stream.lastError?.code ?? "",
      connectedSinceMs: stream.state === "open" ? wholeMs(stream.sinceMs) : 0n,
      reconnects: stream.reconnects,
      incarnation: facts.history.current?.id ?? "",
      ignoredResponses: BigInt(facts.history.ignoredCount),
    },
    queue: {
      waiting: queue.waiting.fresh + queue.waiting.resync,
      inFlight: queue.inFlight,
      delayed: queue.delayed,
      oldestWaitingMs: wholeMs(queue.oldestWaitingMs),
    },
    breaker: { state: breakerStates[facts.breaker] },
    caches: facts.kinds.map((kind) => ({ ...kind })),
    ...(resync && {
      resync: {
        lastStartedMs: wholeMs(resync.startedMs),
        lastDurationMs: wholeMs(resync.durationMs),
        asked: resync.asked,
        corrected: resync.corrected,
      },
    }),
    objects: facts.objects,
    parked: facts.parked,
    retrying: facts.retrying,
    conflicts: facts.conflicts,
    blockedDeletions: facts.blocked,
    failing: facts.failing,
    seals: facts.seals.map((counts) => ({ ...counts, older: [...counts.older] })),
    sealKeyId: facts.sealKeyId,
    originalPods: facts.originalPods,
    repairs: [...facts.repairs],
  });
}

export function blockedDeletionMessage(controller: string, one: SuspectedDeletion): BlockedDeletion {
  return create(BlockedDeletionSchema, {
    controller,
    key: one.key,
    id: one.id,
    reason: one.reason,
    suspectedPasses: one.suspectedPasses,
    firstSuspectedMs: wholeMs(one.firstSuspectedMs),
  });
}

/** Where a controller knows objects from: desired, live, or only remembered. */
export interface KnownObjects<Spec> {
  /** The controller's name. */
  readonly controller: string;
  readonly definition: ControllerDefinition<Spec>;
  readonly store: DesiredStore<Spec>;
  readonly statuses: ObjectStatuses;
}

/** Changes whenever the number of known objects might. */
export function revisionOf<Spec>({ definition, store, statuses }: KnownObjects<Spec>): number {
  const cached = definition.watchedKinds.reduce((sum, { revision }) => sum + revision, 0);
  return cached + store.revision + statuses.revision;
}

/** Called every two seconds while objects come and go, so it allocates nothing. */
export function countObjects<Spec>({ definition, store, statuses }: KnownObjects<Spec>): number {
  let count = store.size;
  for (const { key } of definition.managed()) if (store.get(key) === undefined) count += 1;
  for (const key of statuses.keys())
    if (store.get(key) === undefined && definition.managedByKey(key) === undefined) count += 1;
  return count;
}

export interface ObjectFilter {
  readonly onlyTroubled?: boolean;
  /** Rejected objects first, then by key; for callers that read only the first page. */
  readonly refusedFirst?: boolean;
  /** Only keys that sort after this one. */
  readonly after?: string | undefined;
  /** How many at most; default all. */
  readonly limit?: number;
}

/** Sorted by key, unless `refusedFirst` is set. Messages are built only for the requested page. */
export function listObjects<Spec>(
  known: KnownObjects<Spec>,
  { onlyTroubled, refusedFirst = false, after = "", limit }: ObjectFilter,
): ObjectStatus[] {
  const { definition, store, statuses } = known;
  const failing = definition.failing();
  const isWanted = (key: string) =>
    key > after && (!onlyTroubled || failing.has(key) || isNoteworthy(statuses.get(key)));
  const wanted = [...keysOf(known)].filter(isWanted).sort();
  const isRefused = (key: string) => refusals.has(statuses.get(key)?.outcome ?? "pending");
  if (refusedFirst) wanted.sort((a, b) => Number(isRefused(b)) - Number(isRefused(a)));
  return wanted.slice(0, limit).map((key) =>
    objectStatusMessage({
      controller: known.controller,
      key,
      id: store.get(key)?.id ?? definition.managedByKey(key)?.id ?? "",
      entry: store.get(key),
      record: statuses.get(key),
      readiness: definition.readiness(key),
      failing: failing.get(key) ?? "",
    }),
  );
}

/** In trouble, or in sync except for what the cluster itself changes. */
function isNoteworthy(record: OutcomeRecord | undefined): boolean {
  if (record === undefined) return false;
  return isTroubled(record.outcome) || (record.reason !== "" && record.outcome !== "pending");
}

interface ObjectFacts {
  readonly controller: string;
  readonly key: string;
  readonly id: string;
  readonly entry: DesiredEntry<unknown> | undefined;
  readonly record: OutcomeRecord | undefined;
  readonly readiness: { readonly ready: number; readonly total: number };
  readonly failing: string;
}

function objectStatusMessage(facts: ObjectFacts): ObjectStatus {
  const { controller, key, id, entry, record, readiness, failing } = facts;
  return create(ObjectStatusSchema, {
    controller,
    key,
    id,
    desiredVersion: entry?.version ?? 0n,
    appliedVersion: record?.appliedVersion ?? 0n,
    desired: desiredOf(entry),
    outcome: outcomes[record?.outcome ?? "pending"],
    reason: record?.reason ?? "",
    ...(record?.fieldPath === undefined ? {} : { fieldPath: record.fieldPath }),
    attempts: record?.attempts ?? 0,
    sinceMs: wholeMs(record?.sinceMs ?? 0),
    ...readiness,
    failing,
  });
}

function keysOf<Spec>({ definition, store, statuses }: KnownObjects<Spec>): ReadonlySet<string> {
  const seen = new Set<string>();
  for (const { key } of definition.managed()) seen.add(key);
  for (const { key } of store.entries()) seen.add(key);
  for (const key of statuses.keys()) seen.add(key);
  return seen;
}

function desiredOf(entry: DesiredEntry<unknown> | undefined): ObjectStatus_Desired {
  if (entry === undefined) return ObjectStatus_Desired.UNSPECIFIED;
  return entry.want.kind === "delete" ? ObjectStatus_Desired.DELETE : ObjectStatus_Desired.APPLY;
}

function wholeMs(ms: number): bigint {
  return BigInt(Math.round(ms));
}
