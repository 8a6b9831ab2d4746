// Why a pod cannot run, in the words of Kubernetes: that of its container, or that of the scheduler.
import type { ContainerStatus, Pod } from "kubernetes-types/core/v1.js";
import { obstacleText } from "../../model/obstacle.ts";

// What every container waits for on its way up.
const ordinaryWaits: ReadonlySet<string> = new Set(["ContainerCreating", "PodInitializing"]);

/** Undefined for a pod that runs, is on its way up, or is over: what is over is replaced by another pod. */
export function podObstacle({ metadata, status }: Pod): string | undefined {
  if (metadata?.deletionTimestamp !== undefined) return undefined;
  if (status?.phase === "Failed" || status?.phase === "Succeeded") return undefined;
  const containers = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])];
  const stuck = containers.find(isStuck);
  if (stuck !== undefined) return containerObstacle(stuck);
  const scheduled = status?.conditions?.find(({ type }) => type === "PodScheduled");
  return scheduled?.status === "False" ? obstacleText(scheduled.reason, scheduled.message) : undefined;
}

function isStuck({ state }: ContainerStatus): boolean {
  const reason = state?.waiting?.reason ?? "";
  return reason !== "" && !ordinaryWaits.has(reason);
}

function containerObstacle({ state, lastState }: ContainerStatus): string {
  const { reason, message } = state?.waiting ?? {};
  if (reason !== "CrashLoopBackOff") return obstacleText(reason, message);
  // Its own message names the pod, so that no two are alike. And what the program left behind as its last
  // words is not repeated: a customer's words may hold a secret (K7).
  const { exitCode, reason: end } = lastState?.terminated ?? {};
  return obstacleText(reason, exitCode === undefined ? end : `${end ?? "ended"}, exit code ${exitCode}`);
}
