// Ranks the pods that a ReplicaSet deletes first: the least useful, then the youngest.
import type { Pod } from "kubernetes-types/core/v1.js";
import { conditionOf, isReady, restartsOf } from "./pod-state.ts";

const costAnnotation = "controller.kubernetes.io/pod-deletion-cost";

/** The pods to delete first come first. */
export function rankForRemoval(pods: readonly Pod[]): Pod[] {
  const crowding = new Map<string, number>();
  for (const { spec } of pods) {
    const node = spec?.nodeName ?? "";
    crowding.set(node, (crowding.get(node) ?? 0) + 1);
  }
  const worth = (pod: Pod): readonly (number | string)[] => [
    pod.spec?.nodeName ? 1 : 0,
    { Pending: 0, Unknown: 1 }[pod.status?.phase ?? ""] ?? 2,
    isReady(pod) ? 1 : 0,
    Number(pod.metadata?.annotations?.[costAnnotation] ?? 0),
    -(crowding.get(pod.spec?.nodeName ?? "") ?? 0),
    // Of two ready pods, the one that has been ready longer stays. ISO times sort as text.
    inverted(conditionOf(pod, "Ready")?.lastTransitionTime),
    -restartsOf(pod),
    inverted(pod.metadata?.creationTimestamp),
    pod.metadata?.name ?? "",
  ];
  return pods
    .map((pod) => ({ pod, worth: worth(pod) }))
    .sort((left, right) => compare(left.worth, right.worth))
    .map(({ pod }) => pod);
}

/** Later times come first. */
function inverted(timestamp = ""): number {
  return -Number(timestamp.replaceAll(/\D/g, ""));
}

function compare(left: readonly (number | string)[], right: readonly (number | string)[]): number {
  for (const [index, value] of left.entries()) {
    const other = right[index];
    if (other !== undefined && value !== other) return value < other ? -1 : 1;
  }
  return 0;
}
