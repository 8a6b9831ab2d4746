// Decides for --wait whether an object has reached the goal, may still reach it or has failed, and words its state.
// Pure.
import { type ObjectView, ObjectView_Phase as Phase } from "../../gen/krane/admin/v1/admin_pb.ts";
import { ObjectStatus_Outcome as Outcome } from "../../gen/krane/v1/agent_pb.ts";
import { viewOf } from "../../kinds/object-view.ts";
import { printable } from "../../telemetry/scrub.ts";
import { isHeldByOlderPods, olderPods, olderPodsRemedy, podSelector } from "../../why/older-pods.ts";
import { phaseCell, readyOf, reasonOf } from "./object-rows.ts";

export type WaitGoal = "ready" | "deleted";

export interface Goal {
  readonly goal: WaitGoal;
  /** Only the number of pods was changed, so pods from an older version count like the others. */
  readonly countsOlderPods?: boolean;
}

export type Verdict =
  | { readonly kind: "done" }
  | { readonly kind: "waiting" }
  /** Not done; a final failure ends the wait at once, any other after a while. */
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
  // The control plane's response predates the change.
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

/** Whether it has exactly as many pods as wanted, all ready. */
function isComplete(object: ObjectView): boolean {
  const view = viewOf(object);
  const { isReported, running, wanted } = view.podsOf(object);
  return isReported && running === wanted && view.listedPods(object).length === wanted;
}

/** Why it will not become ready; `title` is its kind and id, as users type them. */
export function refusalText(object: ObjectView | undefined, title: string, isFinal: boolean): string {
  if (object !== undefined && !isFinal && isHeldByOlderPods(object)) return printable(olderPodsText(object));
  return `${stateText(object)}; see krane why ${title}`;
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
  return `${which} from an older version, and krane does not replace running pods. ${remedy}`;
}

/** Its current state, and the reason if there is one. */
export function stateText(object: ObjectView | undefined, version = 0n): string {
  if (object === undefined) return "it does not exist";
  if (object.version < version) return "the control plane does not show the new version yet";
  const pods = readyOf(object);
  const ready = pods === undefined ? "" : `${pods.ready}/${pods.wanted} pods ready`;
  const reason = printable(reasonOf(object));
  const because = reason === "" ? "" : `: ${reason}`;
  switch (object.phase) {
    case Phase.WAITING:
      return `the agent has not applied it yet${because}`;
    case Phase.PROGRESSING:
      return `${ready === "" ? "in progress" : ready}${olderText(object)}${because}`;
    case Phase.DELETING:
      return `${pods === undefined ? "being deleted" : `being deleted, ${pods.ready} ${pods.ready === 1 ? "pod" : "pods"} left`}${because}`;
    default:
      return `${phaseCell(object).text.toLowerCase()}${ready === "" ? "" : `, ${ready}`}${because}`;
  }
}

/** How many of its pods are from an older version; empty if none. */
export function olderText(object: ObjectView): string {
  const { length } = olderPods(object);
  return length === 0 ? "" : `, ${length} from an older version`;
}
