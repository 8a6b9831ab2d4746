// Implements --wait: polls objects until they reach the goal, fail, or the timeout passes.
//
// - An object that the agent rejected ends the wait at once, because a retry would not help.
// - Pods that cannot run may recover, for example when a dependency starts a little later. Only a lasting failure ends
//   the wait. The same goes for pods from an older version: krane does not replace them, but somebody may be about to
//   delete them.
// - The agent acknowledges a change and reports its pods in separate calls. A report from before the wait counts only
//   if no newer one arrives for a moment.
// - A control plane that does not respond, for example during a restart, is polled again.
import { Code, ConnectError } from "@connectrpc/connect";
import { type Clock, sleep } from "../../concurrency/clock.ts";
import { formatDuration } from "../../config/duration.ts";
import type { ObjectRef, ObjectView } from "../../gen/krane/admin/v1/admin_pb.ts";
import { kindOfObject } from "../../kinds/kinds.ts";
import { viewOf } from "../../kinds/object-view.ts";
import type { AdminClient } from "../admin/admin-client.ts";
import { CommandError } from "../command-error.ts";
import type { ProgressLine } from "../terminal/progress-line.ts";
import { isNotFound, titleOf } from "./object-search.ts";
import { callsAtOnce } from "./ordered-work.ts";
import { type Goal, refusalText, stateText, type Verdict, verdictOn, type WaitGoal } from "./wait-verdict.ts";

const pollMs = 500;
const failureLastsMs = 10_000;
const reportComesMs = 2_000;

export interface WaitPlan extends Goal {
  readonly objects: readonly { readonly ref: ObjectRef; readonly version: bigint }[];
  readonly timeoutMs: number;
}

export interface WaitDeps {
  readonly client: Pick<AdminClient, "getObject">;
  readonly clock: Clock;
  readonly progress: ProgressLine;
  /** Called for each object that has reached the goal, in that order. */
  onDone(ref: ObjectRef, object: ObjectView | undefined): void;
}

type AwaitedObject = WaitPlan["objects"][number];

/** What was seen of one object so far. */
interface Sight {
  /** When the report was made that the first poll returned; 0 if none. */
  readonly firstReportMs: bigint;
  readySinceMs?: number | undefined;
  failingSinceMs?: number | undefined;
}

/** Resolves when all have reached the goal; rejects with a CommandError that names the first that has not. */
export async function waitForObjects(plan: WaitPlan, deps: WaitDeps, signal: AbortSignal): Promise<void> {
  const { clock, progress } = deps;
  const startedMs = clock.nowMs();
  const sights = new Map<string, Sight>();
  let waiting = plan.objects;
  try {
    while (true) {
      const round = await lookAtAll(waiting, plan, sights, deps, signal);
      waiting = round.waiting;
      if (waiting.length === 0) return;
      const elapsedMs = clock.nowMs() - startedMs;
      const others = waiting.length > 1 ? ` (and ${waiting.length - 1} more)` : "";
      progress.show(`waiting for ${round.seen[0]}${others}`, `, ${Math.floor(elapsedMs / 1_000)}s`);
      if (elapsedMs >= plan.timeoutMs) throw timedOut(plan, round);
      await sleep(clock, Math.min(pollMs, plan.timeoutMs - elapsedMs), signal);
    }
  } finally {
    progress.clear();
  }
}

interface Round {
  /** Those that have not reached the goal yet. */
  readonly waiting: readonly AwaitedObject[];
  /** The state of those that were polled. */
  readonly seen: readonly string[];
  readonly isSilent: boolean;
}

async function lookAtAll(
  objects: readonly AwaitedObject[],
  plan: WaitPlan,
  sights: Map<string, Sight>,
  deps: WaitDeps,
  signal: AbortSignal,
): Promise<Round> {
  const waiting: AwaitedObject[] = [];
  const seen: string[] = [];
  let looks: readonly Look[] = [];
  for (const [index, each] of objects.entries()) {
    const { ref, version } = each;
    const place = index % callsAtOnce;
    if (place === 0)
      looks = await Promise.all(
        objects.slice(index, index + callsAtOnce).map((next) => look(next.ref, deps, signal)),
      );
    const found = looks[place] ?? { kind: "silent" };
    if (found.kind === "silent") {
      // Each call would take its full deadline to fail; for hundreds of objects that would far exceed the timeout.
      seen.push(`${titleOf(ref)}: the control plane does not respond`);
      return { waiting: [...waiting, ...objects.slice(index)], seen, isSilent: true };
    }
    const verdict = verdictOn(found.view, plan, version);
    const sight = sights.get(titleOf(ref)) ?? { firstReportMs: reportMs(found.view) };
    sights.set(titleOf(ref), sight);
    const nowMs = deps.clock.nowMs();
    if (verdict.kind === "done" && isSure(plan.goal, found.view, sight, nowMs)) {
      deps.progress.clear();
      deps.onDone(ref, found.view);
      continue;
    }
    if (verdict.kind !== "done") sight.readySinceMs = undefined;
    giveUpOn(ref, verdict, found.view, sight, nowMs);
    waiting.push(each);
    seen.push(`${titleOf(ref)}: ${stateText(found.view, version)}`);
  }
  return { waiting, seen, isSilent: false };
}

function reportMs(object: ObjectView | undefined): bigint {
  return (object && viewOf(object).reportedAtMs(object)) ?? 0n;
}

/** Whether the report can be about the change. */
function isSure(goal: WaitGoal, object: ObjectView | undefined, sight: Sight, nowMs: number): boolean {
  // A kind without reports never gets a newer one.
  const kind = kindOfObject(object?.ref?.kind);
  if (goal === "deleted" || (kind !== undefined && kind.rpcs.report === undefined)) return true;
  sight.readySinceMs ??= nowMs;
  return reportMs(object) !== sight.firstReportMs || nowMs - sight.readySinceMs >= reportComesMs;
}

function giveUpOn(
  ref: ObjectRef,
  verdict: Verdict,
  object: ObjectView | undefined,
  sight: Sight,
  nowMs: number,
): void {
  if (verdict.kind !== "failing") {
    sight.failingSinceMs = undefined;
    return;
  }
  sight.failingSinceMs ??= nowMs;
  if (!verdict.isFinal && nowMs - sight.failingSinceMs < failureLastsMs) return;
  const title = titleOf(ref);
  const why = refusalText(object, title, verdict.isFinal);
  throw new CommandError("failed", `${title} will not become ready: ${why}`);
}

type Look = { readonly kind: "seen"; readonly view: ObjectView | undefined } | { readonly kind: "silent" };

async function look(ref: ObjectRef, { client }: WaitDeps, signal: AbortSignal): Promise<Look> {
  try {
    return { kind: "seen", view: (await client.getObject({ ref }, { signal })).object };
  } catch (error) {
    signal.throwIfAborted();
    if (isNotFound(error)) return { kind: "seen", view: undefined };
    if (isPassing(error)) return { kind: "silent" };
    throw error;
  }
}

export function isPassing(error: unknown): boolean {
  return (
    error instanceof ConnectError &&
    [Code.Unavailable, Code.DeadlineExceeded, Code.Aborted].includes(error.code)
  );
}

function timedOut({ goal, timeoutMs }: WaitPlan, { seen, isSilent }: Round): CommandError {
  const lines = seen.map((text) => `not ${goal} after ${formatDuration(timeoutMs)}: ${text}`);
  return new CommandError(isSilent ? "unreachable" : "failed", lines.join("\n"));
}
