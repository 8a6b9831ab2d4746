// Tells the control plane how the agent is doing: regularly, and soon after something got
// into trouble or a stream came or went. A report that fails is missed and nothing else,
// because the next one says it all again.
import type { MessageInitShape } from "@bufbuild/protobuf";
import { isAbort } from "../concurrency/abort.ts";
import { type Clock, sleep } from "../concurrency/clock.ts";
import type { ReportAgentStateRequestSchema } from "../gen/ctrl/v1/cluster_service_pb.ts";
import type { AgentStatus, ControllerStatus } from "../gen/krane/v1/agent_pb.ts";
import type { Log } from "../telemetry/log.ts";
import type { AgentView } from "./agent-view.ts";

export type AgentStateReport = MessageInitShape<typeof ReportAgentStateRequestSchema>;

export interface StateReportsDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly view: AgentView;
  send(report: AgentStateReport, signal: AbortSignal): Promise<void>;
}

const everyMs = 30_000;
// How soon news is told, and how much of it makes one report.
const lookEveryMs = 2_000;
// The counts in the status say how many there are; a list is for looking at examples.
const listedMax = 100;

/** Reports at once and then on and on. Resolves when the signal aborts; never rejects. */
export async function runStateReports(deps: StateReportsDeps, signal: AbortSignal): Promise<void> {
  const { log, view } = deps;
  let healthy = true;
  while (!signal.aborted) {
    const state = view.status();
    try {
      await deps.send(stateReport(view, state), signal);
      healthy = true;
    } catch (error) {
      if (isAbort(error, signal)) return;
      if (healthy) log.warn("the state of the agent could not be reported", { error });
      healthy = false;
    }
    await untilDue(state.controllers, deps, signal).catch(() => undefined);
  }
}

function stateReport(view: AgentView, state: AgentStatus): AgentStateReport {
  const controllers = [...view.controllers.values()];
  const troubled = controllers.flatMap((controller) =>
    controller.objects({ onlyTroubled: true, limit: listedMax }),
  );
  const blocked = controllers.flatMap((controller) => controller.blockedDeletions());
  return {
    state,
    troubledObjects: troubled.slice(0, listedMax),
    blockedDeletions: blocked.slice(0, listedMax),
  };
}

async function untilDue(
  reported: readonly ControllerStatus[],
  { clock, view }: StateReportsDeps,
  signal: AbortSignal,
): Promise<void> {
  let before = reported;
  for (let waitedMs = 0; waitedMs < everyMs; waitedMs += lookEveryMs) {
    await sleep(clock, lookEveryMs, signal);
    const now = view.controllerStatuses();
    if (isNews(before, now)) return;
    before = now;
  }
}

/** More trouble than before, or a stream that came or went. Trouble that lessens can wait its turn. */
function isNews(before: readonly ControllerStatus[], now: readonly ControllerStatus[]): boolean {
  return countTroubled(now) > countTroubled(before) || streamStates(now) !== streamStates(before);
}

function countTroubled(controllers: readonly ControllerStatus[]): number {
  return controllers.reduce(
    (sum, { parked, retrying, conflicts, blockedDeletions }) =>
      sum + parked + retrying + conflicts + blockedDeletions,
    0,
  );
}

function streamStates(controllers: readonly ControllerStatus[]): string {
  return controllers.map(({ stream }) => stream?.state).join();
}
