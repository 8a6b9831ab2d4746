// Merges all reports of a region's agents into what is known now. An agent that restarts
// gets its whole desired state replayed and has none of it until then. Versions that the
// previous agent had settled are still settled, and its troubles stay until the new agent
// has handled the same objects.
//
// - A settled version stays settled: the previous agent left it in the cluster. The exceptions
//   are an agent with more troubles than it could list, because rejected versions count as settled too,
//   and a state that was inferred and turns out to be wrong.
// - Trouble with a version stays until this agent lists it itself or settles that version.
// - The count of rejections includes those that previous agents left on the list, so that a
//   count above the length of the list still means that some are missing from it.
// - What an agent of another cluster settled says nothing about this one. Two clusters that report for one region are
//   remembered, so that somebody notices.
// - Versions of another incarnation mean nothing. An agent that names none may send versions
//   above the region's counter, which predate a restore of the database; nothing derived
//   from them is kept.
import { create } from "@bufbuild/protobuf";
import {
  type ReportAgentStateRequest,
  ReportAgentStateRequestSchema,
} from "../gen/ctrl/v1/cluster_service_pb.ts";
import {
  type AgentStatus,
  type ControllerStatus,
  type ObjectStatus,
  type OtherCluster,
  OtherClusterSchema,
  type StreamStatus,
} from "../gen/krane/v1/agent_pb.ts";
import { kindOfController } from "../kinds/kinds.ts";
import type { AgentReport } from "./store.ts";
import { isListComplete, isSameProcess, listingOf } from "./trouble-news.ts";
import { countsWith } from "./unlisted-refusals.ts";

/** Every version up to `upTo`, except those in `except`. */
export interface SettledVersions {
  readonly upTo: bigint;
  readonly except: readonly bigint[];
}

const nothing: SettledVersions = { upTo: 0n, except: [] };
/** As many as a report may list; see report-limits.ts. */
const troubledMax = 200;

export function settledBy(stream: StreamStatus | undefined): SettledVersions {
  if (stream === undefined) return nothing;
  const { cursor, settledUpTo, unsettled } = stream;
  return bothOf({ upTo: cursor, except: [] }, { upTo: settledUpTo, except: unsettled });
}

/** Clears the versions of another incarnation than the given one: they would settle what the agent has never seen. */
export function clearForeignVersions(report: ReportAgentStateRequest, incarnationId: string): void {
  for (const { stream } of report.state?.controllers ?? []) {
    if (stream === undefined || stream.incarnation === "" || stream.incarnation === incarnationId) continue;
    Object.assign(stream, { cursor: 0n, settledUpTo: 0n, unsettled: [] });
  }
}

/** Agents that have just started, and older ones, name no incarnation. */
function areComparable(one: StreamStatus | undefined, other: StreamStatus | undefined): boolean {
  const [a = "", b = ""] = [one?.incarnation, other?.incarnation];
  return a === "" || b === "" || a === b;
}

export function hasSettled({ upTo, except }: SettledVersions, version: bigint): boolean {
  return version <= upTo && !except.includes(version);
}

/** What was known before a report. */
export interface HeardBefore {
  /** The merged state then. */
  readonly known?: AgentReport | undefined;
  /** The last report as received. */
  readonly state?: AgentReport;
}

/** The merged state after a report, in the form of a report. `counter` is the region's. */
export function knownAfter(before: HeardBefore, now: AgentReport, counter: bigint): AgentReport {
  const { report, atMs } = now;
  const controllers = report.state?.controllers ?? [];
  const isOfAnotherLife = controllers.some(({ stream }) => settledBy(stream).upTo > counter);
  const isElsewhere = areOtherClusters(before.known?.report.state, report.state);
  const known = isOfAnotherLife || isElsewhere ? undefined : before.known?.report;
  // Rejected versions count as settled, and for a previous process only its list of troubles tells the two apart.
  const isTold = isSameProcess(before.known, now) || (before.known && isListComplete(before.known));
  const earlier = (isTold && known?.state?.controllers) || [];
  const own = isSameProcess(before.state, now) ? before.state : undefined;
  const settled = ({ name, stream }: ControllerStatus): SettledVersions => {
    if (isOfAnotherLife) return nothing;
    const reported = own?.report.state?.controllers.find((each) => each.name === name)?.stream;
    if (report.state?.inferred && settledBy(reported).upTo > settledBy(stream).upTo) return settledBy(stream);
    const before = earlier.find((each) => each.name === name)?.stream;
    return areComparable(before, stream) ? bothOf(settledBy(before), settledBy(stream)) : settledBy(stream);
  };
  // A controller that is not ready has reported nothing and takes nothing back. Unknown controller names are dropped:
  // an agent that makes up new ones would grow the list without limit.
  const silent = earlier.filter(
    ({ name }) => kindOfController(name) !== undefined && !controllers.some((each) => each.name === name),
  );
  const wasListed = listingOf(own?.report.troubledObjects ?? []);
  const isListed = listingOf(report.troubledObjects);
  const isOpen = (status: ObjectStatus) =>
    status.desiredVersion <= counter &&
    !isListed(status) &&
    !wasListed(status) &&
    !isSettledTrouble(controllers, status);
  const left = (known?.troubledObjects ?? []).filter(isOpen);
  return {
    report: create(ReportAgentStateRequestSchema, {
      state: {
        instanceId: report.state?.instanceId ?? "",
        startedAtMs: report.state?.startedAtMs ?? 0n,
        clusterId: report.state?.clusterId ?? "",
        otherClusters: otherClusters(before.known, now),
        controllers: [...controllers, ...silent].map((controller) => {
          const { name, breaker } = controller;
          const { upTo: settledUpTo, except } = settled(controller);
          const incarnation =
            controller.stream?.incarnation || earlier.find((each) => each.name === name)?.stream?.incarnation;
          const stream = { settledUpTo, unsettled: [...except], incarnation: incarnation ?? "" };
          // The troubles of a silent controller have been counted already.
          const counts = countsWith(controller, silent.includes(controller) ? [] : left);
          return { name, stream, ...counts, ...(breaker && { breaker }) };
        }),
      },
      troubledObjects: [...report.troubledObjects, ...left].slice(0, troubledMax),
    }),
    atMs,
  };
}

/** Older agents name no cluster. */
function areOtherClusters(one: AgentStatus | undefined, other: AgentStatus | undefined): boolean {
  const [a = "", b = ""] = [one?.clusterId, other?.clusterId];
  return a !== "" && b !== "" && a !== b;
}

// An agent reports every 30 s. After a move to another cluster, the previous one is mentioned for as long.
const claimMs = 120_000;
const clustersMax = 10;

/** The clusters that reported for the region lately, without that of this report. */
function otherClusters(known: AgentReport | undefined, { report, atMs }: AgentReport): OtherCluster[] {
  const { clusterId = "", instanceId = "", otherClusters: earlier = [] } = known?.report.state ?? {};
  const heardAtMs = BigInt(Math.trunc(known?.atMs ?? 0));
  const last = create(OtherClusterSchema, { clusterId, instanceId, heardAtMs });
  const here = report.state?.clusterId;
  const isClaim = (one: OtherCluster) => one.clusterId !== here && atMs - Number(one.heardAtMs) <= claimMs;
  const isFromLast = clusterId !== "" && here !== "";
  const others = earlier.filter((one) => one.clusterId !== clusterId);
  return [...(isFromLast ? [last] : []), ...others].filter(isClaim).slice(0, clustersMax);
}

/** Whether this agent itself has settled the version that the trouble was with. */
function isSettledTrouble(
  controllers: readonly ControllerStatus[],
  { controller, desiredVersion }: ObjectStatus,
): boolean {
  const stream = controllers.find(({ name }) => name === controller)?.stream;
  return hasSettled(settledBy(stream), desiredVersion);
}

/** The versions settled by either. The one that is further ahead covers all of the other. */
function bothOf(a: SettledVersions, b: SettledVersions): SettledVersions {
  const [further, other] = a.upTo >= b.upTo ? [a, b] : [b, a];
  return { upTo: further.upTo, except: further.except.filter((version) => !hasSettled(other, version)) };
}
