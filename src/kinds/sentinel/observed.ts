// Builds the status report of a sentinel from the live apps/v1 Deployment, and never from the desired state (K9).
import { create } from "@bufbuild/protobuf";
import {
  Health,
  type ReportSentinelStatusRequest,
  ReportSentinelStatusRequestSchema,
} from "../../gen/ctrl/v1/sentinel_pb.ts";
import { hashOf } from "../../model/manifest-hash.ts";
import type { SentinelDeploymentProjection } from "./projections.ts";
import type { ObservedSentinel } from "./seen.ts";

export function observeSentinel(deployment: SentinelDeploymentProjection): ObservedSentinel {
  const { name, sentinelId = "", image, replicas, replicasAvailable, failure } = deployment;
  const converged = hasConverged(deployment);
  const observed = observation({
    k8sName: name,
    sentinelId,
    availableReplicas: replicasAvailable,
    health: healthOf(replicas, replicasAvailable),
    // During a rollout two images run, so neither is reported. A paused sentinel has converged too: the report
    // confirms that the requested image is in place.
    runningImage: converged ? image : "",
  });
  const counts = {
    wanted: replicas,
    total: deployment.replicasTotal,
    ready: replicasAvailable,
    updated: deployment.replicasUpdated,
    converged,
    ...(failure !== undefined && { failure }),
  };
  return { ...observed, counts };
}

/** The protocol has no message for a deleted sentinel, so it is reported as unhealthy. */
export function observeAbsentSentinel(name: string, sentinelId: string): ObservedSentinel {
  const health = Health.UNHEALTHY;
  const observed = observation({ k8sName: name, sentinelId, availableReplicas: 0, health, runningImage: "" });
  return { ...observed, counts: { wanted: 0, total: 0, ready: 0, updated: 0, converged: false } };
}

function healthOf(wanted: number, available: number): Health {
  if (wanted === 0) return Health.PAUSED;
  return available > 0 ? Health.HEALTHY : Health.UNHEALTHY;
}

/** The last condition catches a pod of the old template that still serves beside all the new ones. */
function hasConverged(deployment: SentinelDeploymentProjection): boolean {
  const { replicas, replicasTotal, replicasUpdated, replicasAvailable, replicasUnavailable } = deployment;
  return (
    deployment.isStatusCurrent &&
    replicasUpdated >= replicas &&
    replicasAvailable >= replicas &&
    replicasUnavailable === 0 &&
    replicasTotal <= replicasUpdated
  );
}

type Facts = Pick<
  ReportSentinelStatusRequest,
  "k8sName" | "sentinelId" | "availableReplicas" | "health" | "runningImage"
>;

function observation(facts: Facts): Pick<ObservedSentinel, "update" | "fingerprint"> {
  return { update: create(ReportSentinelStatusRequestSchema, facts), fingerprint: hashOf(facts) };
}
