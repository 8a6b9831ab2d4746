// The desired, applied and live state of an object, each as one line of text, and the differences between them.
import { ObjectView_Desired as Desired } from "../gen/krane/admin/v1/admin_pb.ts";
import { ObjectStatus_Outcome as Outcome } from "../gen/krane/v1/agent_pb.ts";
import type { Difference } from "../kinds/kind-view.ts";
import { viewOf } from "../kinds/object-view.ts";
import type { Facts } from "./facts.ts";

export function desiredText({ object }: Facts): string {
  const version = `version ${object.version}`;
  if (object.desired === Desired.STOPPED) return `deleted (${version})`;
  const what = viewOf(object).wantedText(object);
  return what === "" ? version : `${what} (${version})`;
}

/** The reason of an object that is applied and has a pod that is to be replaced. */
export const weakPodReason = /^pod \S+ is less isolated than its template/;

const rejected: ReadonlySet<Outcome> = new Set([Outcome.PARKED, Outcome.CONFLICT]);

export function appliedText(facts: Facts): string {
  const text = appliedVersionText(facts);
  return facts.agent.state?.inferred
    ? `${text} (inferred: this agent does not report what it applied)`
    : text;
}

function appliedVersionText({ object, trouble, earlierTrouble, controller }: Facts): string {
  const before = (trouble ?? earlierTrouble)?.appliedVersion ?? 0n;
  const inForce = before === 0n ? "nothing is applied" : `version ${before} stays in force`;
  if (trouble !== undefined && rejected.has(trouble.outcome)) return `rejected; ${inForce}`;
  if (trouble !== undefined && weakPodReason.test(trouble.reason)) return `version ${before}`;
  if (trouble !== undefined && trouble.outcome === Outcome.RETRYING)
    return `failed ${trouble.attempts} ${trouble.attempts === 1 ? "time" : "times"} so far; ${inForce}`;
  if (object.settled) return `version ${object.version}`;
  if (trouble?.outcome === Outcome.UNSPECIFIED) return "unknown";
  const cursor = controller?.stream?.cursor;
  return cursor === undefined ? "unknown" : `not yet; the agent has processed versions up to ${cursor}`;
}

export function liveText({ object, pods, nowMs }: Facts): string {
  const view = viewOf(object);
  const reportedAtMs = view.reportedAtMs(object);
  if (reportedAtMs === undefined) return pods.wanted === undefined ? "" : "no status report yet";
  return `${view.liveText(object, pods)} (reported ${ago(reportedAtMs, nowMs)})`;
}

export function differencesOf({ object, pods, controller }: Facts): readonly Difference[] {
  const view = viewOf(object);
  if (object.desired === Desired.STOPPED)
    return view.stillExists(object) ? [{ field: "existence", desired: "gone", live: "still there" }] : [];
  const differences: Difference[] = [];
  const differ = (field: string, desired: string, live: string) => {
    if (desired !== live) differences.push({ field, desired, live });
  };
  const cursor = controller?.stream?.cursor;
  if (!object.settled && cursor !== undefined)
    differ("version", `${object.version}`, `processed up to ${cursor}`);
  if (pods.wanted !== undefined && pods.isReported) {
    differ("ready pods", `${pods.wanted}`, `${pods.running}`);
    if (pods.outdated > 0) differ("pods from an older version", "0", `${pods.outdated}`);
  }
  return [...differences, ...view.differencesOf(object)];
}

const units = [
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "m"],
  [1_000, "s"],
] as const;

/** `12s ago`. Clocks of two machines differ a little, so a time in the future counts as now. */
export function ago(atMs: bigint, nowMs: number): string {
  const ageMs = Math.max(0, nowMs - Number(atMs));
  const [unitMs, word] = units.find(([ms]) => ageMs >= ms) ?? [1_000, "s"];
  return `${Math.floor(ageMs / unitMs)}${word} ago`;
}
