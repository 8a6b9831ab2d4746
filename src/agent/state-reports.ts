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
const lookEveryMs = 500;
// News is reported at once. While there is news all the time, it is reported every two seconds after the first four reports.
const spacingMs = 2_000;
const aheadMsMax = 3 * spacingMs;
const retryMs = 2_000;
// Recovery is reported a little later, because a crash-looping container looks healthy between two crashes.
const recoveredMs = 10_000;
// The status has the full counts; the lists only show examples.
const listedMax = 100;
const adoptableMax = 1_000;

/** Sends a report immediately, then repeats until the signal aborts. Never rejects. */
export async function runStateReports(deps: StateReportsDeps, signal: AbortSignal): Promise<void> {
  const { log, view, clock } = deps;
  const component = "agent state";
  let delivered: Sight = { controllers: [], failures: [] };
  let failures = 0;
  let spacedUntilMs = 0;
  while (!signal.aborted) {
    const state = view.status();
    const seen = { controllers: state.controllers, failures: failuresOf(view) };
    const startedMs = clock.nowMs();
    spacedUntilMs = Math.max(spacedUntilMs, startedMs) + spacingMs;
    const sent = () => ({ component, operation: "report", durationMs: clock.nowMs() - startedMs });
    try {
      const response = await deps.send(stateReport(view, state), signal);
      log.event("reported", { ...sent(), outcome: "update" });
      delivered = seen;
      failures = 0;
      for (const released of response?.releasedDeletions ?? []) release(released, deps);
      adopt(response?.adoptions ?? [], deps);
    } catch (error) {
      if (isAbort(error, signal)) return;
      log.event("reported", { ...sent(), outcome: "failed", error });
      failures += 1;
    }
    await untilDue({ delivered, failures, soonestMs: spacedUntilMs - aheadMsMax }, deps, signal).catch(
      () => undefined,
    );
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

/** What news is found in. */
interface Sight {
  readonly controllers: readonly ControllerStatus[];
  /** Why pods cannot run, by key, for each controller. */
  readonly failures: readonly ReadonlyMap<string, string>[];
}

function failuresOf({ controllers }: AgentView): Sight["failures"] {
  return [...controllers.values()].map((controller) => controller.failures());
}

interface ReportHistory {
  /** What was seen at the last report that was delivered. */
  readonly delivered: Sight;
  /** Consecutive failed reports. */
  readonly failures: number;
  /** When news may be reported again. */
  readonly soonestMs: number;
}

async function untilDue(
  { delivered, failures, soonestMs }: ReportHistory,
  { clock, view }: StateReportsDeps,
  signal: AbortSignal,
): Promise<void> {
  // Back off, so that an unavailable control plane does not get a call from every agent every two seconds.
  const retryAfterMs = failures === 0 ? 0 : retryMs * 2 ** failures;
  let before = delivered;
  let isDue = false;
  for (let waitedMs = 0; waitedMs < everyMs; waitedMs += lookEveryMs) {
    await sleep(clock, lookEveryMs, signal);
    const now = { controllers: view.controllerStatuses(), failures: failuresOf(view) };
    isDue ||= isSlowNews(delivered.controllers, now.controllers, waitedMs) || isNews(before, now);
    if (isDue && waitedMs + lookEveryMs >= retryAfterMs && clock.nowMs() >= soonestMs) return;
    before = now;
  }
}

/** A settled version, or after a while less trouble or fewer strangers than in the last report. */
function isSlowNews(
  delivered: readonly ControllerStatus[],
  now: readonly ControllerStatus[],
  waitedMs: number,
): boolean {
  const isLess =
    countTroubled(now) < countTroubled(delivered) || countStrangers(now) < countStrangers(delivered);
  return settledVersions(now) !== settledVersions(delivered) || (waitedMs >= recoveredMs && isLess);
}

/** More objects in trouble than before, pods that cannot run for another reason, a repair, or a stream that connected or disconnected. */
function isNews(before: Sight, now: Sight): boolean {
  return (
    countTroubled(now.controllers) > countTroubled(before.controllers) ||
    now.failures.some((failures, index) => hasOther(before.failures[index], failures)) ||
    lastRepairs(now.controllers) !== lastRepairs(before.controllers) ||
    streamStates(now.controllers) !== streamStates(before.controllers)
  );
}

/** Both are the same map if nothing changed. */
function hasOther(
  before: ReadonlyMap<string, string> | undefined,
  now: ReadonlyMap<string, string>,
): boolean {
  return before !== now && [...now].some(([key, reason]) => reason !== before?.get(key));
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
