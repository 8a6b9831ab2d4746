// Tells the control plane how the agent is doing: regularly, and soon after something was
// settled, got into trouble, or a stream came or went. The next report says it all again,
// so one that fails is not kept; what it had to tell is still news. The answer to a report
// brings what people have released at the control plane.
import type { MessageInitShape } from "@bufbuild/protobuf";
import { isAbort } from "../concurrency/abort.ts";
import { type Clock, sleep } from "../concurrency/clock.ts";
import type {
  ReportAgentStateRequestSchema,
  ReportAgentStateResponse,
} from "../gen/ctrl/v1/cluster_service_pb.ts";
import type { AgentStatus, ControllerStatus, ReleaseDeletionRequest } from "../gen/krane/v1/agent_pb.ts";
import type { Log } from "../telemetry/log.ts";
import type { AgentView } from "./agent-view.ts";

export type AgentStateReport = MessageInitShape<typeof ReportAgentStateRequestSchema>;

export interface StateReportsDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly view: AgentView;
  /** Undefined from a control plane that does not take such reports. */
  send(report: AgentStateReport, signal: AbortSignal): Promise<ReportAgentStateResponse | undefined>;
}

const everyMs = 30_000;
// How soon news is told, and how much of it makes one report.
const lookEveryMs = 2_000;
// Trouble that lessens is told a little later: a program that crashes again and again is well in between.
const relievedMs = 10_000;
// The counts in the status say how many there are; a list is for looking at examples.
const listedMax = 100;

/** Reports at once and then on and on. Resolves when the signal aborts; never rejects. */
export async function runStateReports(deps: StateReportsDeps, signal: AbortSignal): Promise<void> {
  const { log, view } = deps;
  let delivered: readonly ControllerStatus[] = [];
  let failures = 0;
  while (!signal.aborted) {
    const state = view.status();
    try {
      const answer = await deps.send(stateReport(view, state), signal);
      delivered = state.controllers;
      failures = 0;
      for (const released of answer?.releasedDeletions ?? []) release(released, deps);
    } catch (error) {
      if (isAbort(error, signal)) return;
      if (failures === 0) log.warn("the state of the agent could not be reported", { error });
      failures += 1;
    }
    await untilDue({ delivered, failures }, deps, signal).catch(() => undefined);
  }
}

function stateReport(view: AgentView, state: AgentStatus): AgentStateReport {
  const controllers = [...view.controllers.values()];
  // What was refused is settled as well, so only the list tells it from what was carried out: pods that fail, of which
  // there may be hundreds on any day, must not push it off.
  const troubled = controllers.map((controller) =>
    controller.objects({ onlyTroubled: true, refusedFirst: true, limit: listedMax }),
  );
  return {
    state,
    troubledObjects: inTurn(troubled),
    blockedDeletions: inTurn(controllers.map((controller) => controller.blockedDeletions())),
  };
}

/** One of each, then another of each: a controller with a thousand in trouble does not hide those of the others (K6). */
function inTurn<T>(lists: readonly (readonly T[])[]): T[] {
  const taken: T[] = [];
  const longest = Math.min(listedMax, Math.max(0, ...lists.map(({ length }) => length)));
  for (let index = 0; index < longest; index++)
    for (const list of lists) if (index < list.length) taken.push(list[index] as T);
  return taken.slice(0, listedMax);
}

/**
 * What AgentService.ReleaseDeletion does. The control plane says it until a report no longer lists the deletion,
 * and reports cross its answers, so what is not held back any more is passed over in silence.
 */
function release({ controller, key }: ReleaseDeletionRequest, { view, log }: StateReportsDeps): void {
  const holder = view.controllers.get(controller);
  const isHeld = holder?.blockedDeletions().some((held) => held.key === key);
  if (isHeld && holder?.releaseDeletion(key))
    log.warn("a blocked deletion was released at the control plane", { controller, key });
}

interface Told {
  /** What the control plane knows. */
  readonly delivered: readonly ControllerStatus[];
  /** Reports in a row that did not reach it. */
  readonly failures: number;
}

async function untilDue(
  { delivered, failures }: Told,
  { clock, view }: StateReportsDeps,
  signal: AbortSignal,
): Promise<void> {
  // A control plane that is away is not asked every two seconds by everybody.
  const soonestMs = lookEveryMs * 2 ** failures;
  let before = delivered;
  let isDue = false;
  for (let waitedMs = 0; waitedMs < everyMs; waitedMs += lookEveryMs) {
    await sleep(clock, lookEveryMs, signal);
    const now = view.controllerStatuses();
    const isRelieved = waitedMs >= relievedMs && countTroubled(now) < countTroubled(delivered);
    const isSettled = settledVersions(now) !== settledVersions(delivered);
    isDue ||= isRelieved || isSettled || isNews(before, now);
    if (isDue && waitedMs + lookEveryMs >= soonestMs) return;
    before = now;
  }
}

/** More trouble than before, or a stream that came or went. */
function isNews(before: readonly ControllerStatus[], now: readonly ControllerStatus[]): boolean {
  return countTroubled(now) > countTroubled(before) || streamStates(now) !== streamStates(before);
}

function countTroubled(controllers: readonly ControllerStatus[]): number {
  return controllers.reduce(
    (sum, { parked, retrying, conflicts, blockedDeletions, failing }) =>
      sum + parked + retrying + conflicts + blockedDeletions + failing,
    0,
  );
}

/** What waits for a version to be settled is not kept waiting for the next turn. */
function settledVersions(controllers: readonly ControllerStatus[]): string {
  return controllers.map(({ stream }) => [stream?.cursor, stream?.settledUpTo, stream?.unsettled]).join(" ");
}

function streamStates(controllers: readonly ControllerStatus[]): string {
  return controllers.map(({ stream }) => stream?.state).join();
}
