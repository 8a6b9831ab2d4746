// Reports the agent's state to the control plane: every 30 s, and soon after a version settled, objects got into
// trouble or were repaired, or a stream connected or disconnected. Each report is complete, so a failed one is not kept; its changes
// still count as news for the next one. The response lists the held-back deletions and the adoptions that were allowed at
// the control plane.
import type { MessageInitShape } from "@bufbuild/protobuf";
import { isAbort } from "../concurrency/abort.ts";
import { type Clock, sleep } from "../concurrency/clock.ts";
import type {
  ReportAgentStateRequestSchema,
  ReportAgentStateResponse,
} from "../gen/ctrl/v1/cluster_service_pb.ts";
import type {
  AdoptObjectRequest,
  AgentStatus,
  ControllerStatus,
  ReleaseDeletionRequest,
  Stranger,
} from "../gen/krane/v1/agent_pb.ts";
import type { Log } from "../telemetry/log.ts";
import type { AgentView } from "./agent-view.ts";

export type AgentStateReport = MessageInitShape<typeof ReportAgentStateRequestSchema>;

export interface StateReportsDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly view: AgentView;
  /** Resolves with undefined when the control plane does not support these reports. */
  send(report: AgentStateReport, signal: AbortSignal): Promise<ReportAgentStateResponse | undefined>;
}

const everyMs = 30_000;
// How often the agent looks for news. All news of one interval goes into one report.
const lookEveryMs = 2_000;
// Recovery is reported a little later, because a crash-looping container looks healthy between two crashes.
const recoveredMs = 10_000;
// The status has the full counts; the lists only show examples.
const listedMax = 100;
const adoptableMax = 1_000;

/** Sends a report immediately, then repeats until the signal aborts. Never rejects. */
export async function runStateReports(deps: StateReportsDeps, signal: AbortSignal): Promise<void> {
  const { log, view, clock } = deps;
  const component = "agent state";
  let delivered: readonly ControllerStatus[] = [];
  let failures = 0;
  while (!signal.aborted) {
    const state = view.status();
    const startedMs = clock.nowMs();
    const sent = () => ({ component, operation: "report", durationMs: clock.nowMs() - startedMs });
    try {
      const response = await deps.send(stateReport(view, state), signal);
      log.event("reported", { ...sent(), outcome: "update" });
      delivered = state.controllers;
      failures = 0;
      for (const released of response?.releasedDeletions ?? []) release(released, deps);
      adopt(response?.adoptions ?? [], deps);
    } catch (error) {
      if (isAbort(error, signal)) return;
      log.event("reported", { ...sent(), outcome: "failed", error });
      failures += 1;
    }
    await untilDue({ delivered, failures }, deps, signal).catch(() => undefined);
  }
}

function stateReport(view: AgentView, state: AgentStatus): AgentStateReport {
  const controllers = [...view.controllers.values()];
  // Rejected specs count as settled too, so only this list distinguishes them from applied ones. They come first,
  // so that hundreds of failing pods cannot push them off the list.
  const troubled = controllers.map((controller) =>
    controller.objects({ onlyTroubled: true, refusedFirst: true, limit: listedMax }),
  );
  return {
    state,
    troubledObjects: interleave(troubled),
    blockedDeletions: interleave(controllers.map((controller) => controller.blockedDeletions())),
    strangers: strangersOf(controllers.flatMap((controller) => controller.seals.strangers())),
  };
}

/** Those that a person can have adopted come first, and are cut much later. */
function strangersOf(strangers: readonly Stranger[]): Stranger[] {
  const adoptable = strangers.filter((each) => each.adoptable).slice(0, adoptableMax);
  const others = strangers.filter((each) => !each.adoptable).slice(0, listedMax);
  return [...adoptable, ...others];
}

/** Takes items from the lists in turn, so that a controller with a thousand failing objects does not hide the others (K6). */
function interleave<T>(lists: readonly (readonly T[])[]): T[] {
  const taken: T[] = [];
  const longest = Math.min(listedMax, Math.max(0, ...lists.map(({ length }) => length)));
  for (let index = 0; index < longest; index++)
    for (const list of lists) if (index < list.length) taken.push(list[index] as T);
  return taken.slice(0, listedMax);
}

/**
 * Does the same as AgentService.ReleaseDeletion. The control plane repeats a release until a report no longer lists the
 * deletion, and a report may already be under way by then, so a deletion that is no longer held back is ignored.
 */
function release({ controller, key }: ReleaseDeletionRequest, { view, log }: StateReportsDeps): void {
  const holder = view.controllers.get(controller);
  const isHeld = holder?.blockedDeletions().some((held) => held.key === key);
  if (isHeld && holder?.releaseDeletion(key))
    log.warn("a held-back deletion was allowed at the control plane", { controller, key });
}

/** Does the same as AgentService.AdoptObject. The control plane repeats an adoption until a report no longer lists it. */
function adopt(objects: readonly AdoptObjectRequest[], { view, log }: StateReportsDeps): void {
  for (const [controller, holder] of view.controllers) {
    const own = objects.filter((object) => object.controller === controller);
    if (own.length === 0) continue;
    const outcomes = holder.seals.adopt(own);
    for (const [index, { kind, namespace, name, uid }] of own.entries())
      if (outcomes[index]?.kind === "allowed") {
        const fields = { controller, kind, namespace, name, uid };
        log.warn("the adoption of an object was allowed at the control plane", fields);
      }
  }
}

interface ReportHistory {
  /** The state in the last report that was delivered. */
  readonly delivered: readonly ControllerStatus[];
  /** Consecutive failed reports. */
  readonly failures: number;
}

async function untilDue(
  { delivered, failures }: ReportHistory,
  { clock, view }: StateReportsDeps,
  signal: AbortSignal,
): Promise<void> {
  // Back off, so that an unavailable control plane does not get a call from every agent every two seconds.
  const soonestMs = lookEveryMs * 2 ** failures;
  let before = delivered;
  let isDue = false;
  for (let waitedMs = 0; waitedMs < everyMs; waitedMs += lookEveryMs) {
    await sleep(clock, lookEveryMs, signal);
    const now = view.controllerStatuses();
    const isRecovered = waitedMs >= recoveredMs && countTroubled(now) < countTroubled(delivered);
    const isSettled = settledVersions(now) !== settledVersions(delivered);
    const isAdopted = waitedMs >= recoveredMs && countStrangers(now) < countStrangers(delivered);
    isDue ||= isRecovered || isSettled || isAdopted || isNews(before, now);
    if (isDue && waitedMs + lookEveryMs >= soonestMs) return;
    before = now;
  }
}

/** More objects in trouble than before, a repair, or a stream that connected or disconnected. */
function isNews(before: readonly ControllerStatus[], now: readonly ControllerStatus[]): boolean {
  return (
    countTroubled(now) > countTroubled(before) ||
    lastRepairs(now) !== lastRepairs(before) ||
    streamStates(now) !== streamStates(before)
  );
}

function countTroubled(controllers: readonly ControllerStatus[]): number {
  return controllers.reduce(
    (sum, { parked, retrying, conflicts, blockedDeletions, failing }) =>
      sum + parked + retrying + conflicts + blockedDeletions + failing,
    0,
  );
}

function countStrangers(controllers: readonly ControllerStatus[]): number {
  return controllers
    .flatMap(({ seals }) => seals)
    .reduce((sum, { otherRegion, unknownKey, foreign }) => sum + otherRegion + unknownKey + foreign, 0);
}

/** Changes whenever a version settles, so that callers who wait for one do not wait for the next regular report. */
function settledVersions(controllers: readonly ControllerStatus[]): string {
  return controllers.map(({ stream }) => [stream?.cursor, stream?.settledUpTo, stream?.unsettled]).join(" ");
}

function lastRepairs(controllers: readonly ControllerStatus[]): string {
  return controllers.map(({ repairs }) => repairs.at(-1)?.number ?? 0n).join();
}

function streamStates(controllers: readonly ControllerStatus[]): string {
  return controllers.map(({ stream }) => stream?.state).join();
}
