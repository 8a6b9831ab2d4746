// What a report comes to, in a few words for the history: counts and states, never
// names or addresses, so that two reports which mean the same read the same.
import { ReportDeploymentStatusRequest_Update_Instance_Status as Status } from "../gen/ctrl/v1/deployment_pb.ts";
import { Health } from "../gen/ctrl/v1/sentinel_pb.ts";
import type { DeploymentReport, SentinelReport } from "./store.ts";

const statusWords: readonly (readonly [Status, string])[] = [
  [Status.RUNNING, "running"],
  [Status.PENDING, "pending"],
  [Status.FAILED, "failed"],
  [Status.UNSPECIFIED, "unknown"],
];

const healthWords: Readonly<Record<Health, string>> = {
  [Health.UNSPECIFIED]: "unknown",
  [Health.HEALTHY]: "healthy",
  [Health.UNHEALTHY]: "unhealthy",
  [Health.PAUSED]: "paused",
};

export function deploymentOutcome({ exists, instances }: DeploymentReport): string {
  if (!exists) return "gone";
  const counts = statusWords
    .map(
      ([status, word]) => [instances.filter((instance) => instance.status === status).length, word] as const,
    )
    .filter(([count]) => count > 0);
  return counts.length === 0 ? "no instances" : counts.map(([count, word]) => `${count} ${word}`).join(", ");
}

export function sentinelOutcome({ health, availableReplicas }: SentinelReport): string {
  return `${healthWords[health] ?? "unknown"}, ${availableReplicas} available`;
}
