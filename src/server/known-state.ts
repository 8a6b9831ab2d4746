// What is known of a region's agent by all that it ever said. An agent that starts anew has
// its whole desired state brought once more, and knows of nothing until then. What it had
// settled before is settled all the same, and what it had trouble with is in trouble until
// it has come to it again.
//
// - What was settled once stays settled: the one before left it in the cluster. Unless it had
//   more trouble than it could list: what it refused is settled as well.
// - Trouble with a version stays until this agent lists it itself, or settles that version.
// - How much was refused in all is counted with what earlier ones left on the list, so that a
//   count above the list still means that something is missing there.
// - Numbers above our own counter are of another life of this control plane, as before a
//   backup was restored. Nothing that goes by them is kept.
import { create } from "@bufbuild/protobuf";
import { ReportAgentStateRequestSchema } from "../gen/ctrl/v1/cluster_service_pb.ts";
import type { ControllerStatus, ObjectStatus, StreamStatus } from "../gen/krane/v1/agent_pb.ts";
import { kindOfController } from "../kinds/kinds.ts";
import type { AgentReport } from "./store.ts";
import { isListComplete, isSameProcess, listingOf } from "./trouble-news.ts";
import { countsWith } from "./unlisted-refusals.ts";

/** Every version up to `upTo`, but for those in `except`. */
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

export function hasSettled({ upTo, except }: SettledVersions, version: bigint): boolean {
  return version <= upTo && !except.includes(version);
}

/** What was heard before a report. */
export interface HeardBefore {
  /** What was known then. */
  readonly known?: AgentReport | undefined;
  /** The last report as it came. */
  readonly state?: AgentReport | undefined;
}

/** What is known after a report, in the form of one. `counter` is that of the region. */
export function knownAfter(before: HeardBefore, now: AgentReport, counter: bigint): AgentReport {
  const { report, atMs } = now;
  const controllers = report.state?.controllers ?? [];
  const isOfAnotherLife = controllers.some(({ stream }) => settledBy(stream).upTo > counter);
  const known = isOfAnotherLife ? undefined : before.known?.report;
  // What was refused is settled too, and of an earlier process only its list of troubles tells the two apart.
  const isTold = isSameProcess(before.known, now) || (before.known && isListComplete(before.known));
  const earlier = (isTold && known?.state?.controllers) || [];
  const settled = ({ name, stream }: ControllerStatus): SettledVersions => {
    if (isOfAnotherLife) return nothing;
    return bothOf(settledBy(earlier.find((each) => each.name === name)?.stream), settledBy(stream));
  };
  // One that is not there yet has not said anything, and takes nothing back. Names that mean nothing here are not
  // kept: an agent that makes up new ones would have a list without an end.
  const silent = earlier.filter(
    ({ name }) => kindOfController(name) !== undefined && !controllers.some((each) => each.name === name),
  );
  const own = isSameProcess(before.state, now) ? before.state : undefined;
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
        controllers: [...controllers, ...silent].map((controller) => {
          const { name, breaker } = controller;
          const { upTo: settledUpTo, except } = settled(controller);
          const stream = { settledUpTo, unsettled: [...except] };
          // Those of a silent one have been counted already.
          const counts = countsWith(controller, silent.includes(controller) ? [] : left);
          return { name, stream, ...counts, ...(breaker && { breaker }) };
        }),
      },
      troubledObjects: [...report.troubledObjects, ...left].slice(0, troubledMax),
    }),
    atMs,
  };
}

/** Whether this agent has settled what the trouble was with, by its own word. */
function isSettledTrouble(
  controllers: readonly ControllerStatus[],
  { controller, desiredVersion }: ObjectStatus,
): boolean {
  const stream = controllers.find(({ name }) => name === controller)?.stream;
  return hasSettled(settledBy(stream), desiredVersion);
}

/** What one of the two has settled. The one that has come further has all of the other behind it. */
function bothOf(a: SettledVersions, b: SettledVersions): SettledVersions {
  const [further, other] = a.upTo >= b.upTo ? [a, b] : [b, a];
  return { upTo: further.upTo, except: further.except.filter((version) => !hasSettled(other, version)) };
}
