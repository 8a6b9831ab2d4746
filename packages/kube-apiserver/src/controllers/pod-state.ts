// Interprets a pod's status, for controllers that count pods.
import type { Pod, PodCondition } from "kubernetes-types/core/v1.js";
import { parseTimestamp } from "../timestamps.ts";

export function conditionOf({ status }: Pod, type: string): PodCondition | undefined {
  return (status?.conditions ?? []).find((condition) => condition.type === type);
}

export function isReady(pod: Pod): boolean {
  return conditionOf(pod, "Ready")?.status === "True";
}

/** Neither terminated nor being deleted. */
export function isActive({ metadata, status }: Pod): boolean {
  return !isFinished({ status } as Pod) && metadata?.deletionTimestamp === undefined;
}

export function isFinished({ status }: Pod): boolean {
  return status?.phase === "Succeeded" || status?.phase === "Failed";
}

/** When the pod becomes available: ready for minReadySeconds. Undefined while it is not ready. */
export function availableAtMs(pod: Pod, minReadySeconds: number): number | undefined {
  if (!isReady(pod)) return undefined;
  const since = parseTimestamp(conditionOf(pod, "Ready")?.lastTransitionTime ?? "") ?? 0;
  return since + minReadySeconds * 1000;
}

export function restartsOf({ status }: Pod): number {
  return (status?.containerStatuses ?? []).reduce(
    (most, { restartCount }) => Math.max(most, restartCount),
    0,
  );
}
