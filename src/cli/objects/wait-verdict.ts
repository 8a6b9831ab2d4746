// What --wait makes of one look at an object: whether it is what was asked for, may still become so, or will not; and
// how that is put into words. Pure.
import { type ObjectView, ObjectView_Phase as Phase } from "../../gen/krane/admin/v1/admin_pb.ts";
import { ObjectStatus_Outcome as Outcome } from "../../gen/krane/v1/agent_pb.ts";
import { viewOf } from "../../kinds/object-view.ts";
import { printable } from "../../telemetry/printable.ts";
import { isHeldByOlderPods, olderPods, olderPodsRemedy } from "../../why/older-pods.ts";
import { podSelector } from "../../why/pod-selector.ts";
import { phaseCell, readyOf, reasonOf } from "./object-rows.ts";

export type WaitGoal = "ready" | "deleted";

export interface Goal {
  readonly goal: WaitGoal;
  /** Only the number of pods was changed: those of an earlier description count like the others. */
  readonly countsOlderPods?: boolean;
}

export type Verdict =
  | { readonly kind: "done" }
  | { readonly kind: "waiting" }
  /** Not done, and not getting there as things are. */
  | { readonly kind: "failing"; readonly isFinal: boolean };

export function verdictOn(
  object: ObjectView | undefined,
  { goal, countsOlderPods = false }: Goal,
  version: bigint,
): Verdict {
  if (goal === "deleted") {
    const isGone = object === undefined || object.phase === Phase.DELETED;
    return isGone ? { kind: "done" } : { kind: "waiting" };
  }
  if (object === undefined) return { kind: "failing", isFinal: true };
  // An answer from before the change says nothing about it.
  if (object.version < version) return { kind: "waiting" };
  switch (object.phase) {
    case Phase.READY:
    case Phase.PAUSED:
      return { kind: "done" };
    case Phase.DELETING:
    case Phase.DELETED:
      return { kind: "failing", isFinal: true };
    case Phase.FAILED:
      return { kind: "failing", isFinal: object.trouble?.outcome === Outcome.PARKED };
    case Phase.PROGRESSING:
      if (!isHeldByOlderPods(object)) return { kind: "waiting" };
      return countsOlderPods && isComplete(object) ? { kind: "done" } : { kind: "failing", isFinal: false };
    default:
      return { kind: "waiting" };
  }
}

/** As many pods as there should be, all of them ready. */
function isComplete(object: ObjectView): boolean {
  const view = viewOf(object);
  const { isReported, running, wanted } = view.podsOf(object);
  return isReported && running === wanted && view.listedPods(object).length === wanted;
}

/** Why it will not become ready; `title` is what people call it. */
export function refusalText(object: ObjectView | undefined, title: string, isFinal: boolean): string {
  if (object !== undefined && !isFinal && isHeldByOlderPods(object)) return printable(olderPodsText(object));
  return `${stateText(object)}; krane why ${title} says more`;
}

function olderPodsText(object: ObjectView): string {
  const { ref, namespace } = object;
  const names = olderPods(object);
  const count = names.length;
  const which = count === 0 ? "pods are" : `${count} of its pods ${count === 1 ? "is" : "are"}`;
  const remedy = olderPodsRemedy({
    namespace,
    selector: podSelector(ref?.kind, ref?.id ?? ""),
    olderPods: names,
  });
  return `${which} of an earlier description, and krane replaces no pod. ${remedy}`;
}

/** How far it has come, and why not further. */
export function stateText(object: ObjectView | undefined, version = 0n): string {
  if (object === undefined) return "it is not there";
  if (object.version < version) return "not yet seen by the control plane";
  const pods = readyOf(object);
  const ready = pods === undefined ? "" : `${pods.ready}/${pods.wanted} pods ready`;
  const reason = printable(reasonOf(object));
  const because = reason === "" ? "" : `: ${reason}`;
  switch (object.phase) {
    case Phase.WAITING:
      return `not yet settled by the agent${because}`;
    case Phase.PROGRESSING:
      return `${ready === "" ? "on its way" : ready}${olderText(object)}${because}`;
    case Phase.DELETING:
      return `${pods === undefined ? "being deleted" : `being deleted, ${pods.ready} ${pods.ready === 1 ? "pod" : "pods"} left`}${because}`;
    default:
      return `${phaseCell(object).text.toLowerCase()}${ready === "" ? "" : `, ${ready}`}${because}`;
  }
}

/** What of its pods an earlier description made; empty where none. */
export function olderText(object: ObjectView): string {
  const { length } = olderPods(object);
  return length === 0 ? "" : `, ${length} of an earlier description`;
}
