// Why pods of a sentinel cannot run, for people. krane does not watch the pods of sentinels; their apps/v1
// Deployment tells when pods are refused, and after some minutes that they do not come up. Empty where all is well.
import { heldText } from "../../model/obstacle.ts";
import type { SentinelDeploymentProjection } from "./projections.ts";

type JudgedDeployment = Pick<
  SentinelDeploymentProjection,
  "replicas" | "replicasAvailable" | "obstacle" | "heldBy"
>;

export function failingSentinel(deployment: JudgedDeployment): string {
  const { replicas, replicasAvailable, obstacle, heldBy } = deployment;
  if (heldBy !== undefined) return heldText("Deployment", heldBy);
  if (obstacle === undefined) return "";
  const missing = Math.max(0, replicas - replicasAvailable);
  // A roll-out can be stuck while every pod of before still serves.
  return missing === 0
    ? obstacle
    : `${missing} of ${replicas} ${replicas === 1 ? "pod" : "pods"}: ${obstacle}`;
}
