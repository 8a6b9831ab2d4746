// Builds the status report of a deployment: the complete list of its instances, from the observed pods and never from
// the desired state (K9).
import { create } from "@bufbuild/protobuf";
import {
  type ReportDeploymentStatusRequest_Update,
  ReportDeploymentStatusRequest_UpdateSchema,
  ReportDeploymentStatusRequest_Update_Instance_Status as Status,
} from "../../gen/ctrl/v1/deployment_pb.ts";
import { hashOf } from "../../model/manifest-hash.ts";
import {
  addressOf,
  isFailure,
  isOfOlderTemplate,
  type PodProjection,
  type PodStanding,
  type ReplicaSetProjection,
} from "./projections.ts";
import type { InstanceCounts, ObservedDeployment } from "./seen.ts";

export interface ObservedPod extends PodProjection {
  readonly name: string;
}

function statusOf(standing: PodStanding): Status {
  if (isFailure(standing)) return Status.FAILED;
  return standing === "running" ? Status.RUNNING : Status.PENDING;
}

/** Only pods that this ReplicaSet controls count, not those of a deleted ReplicaSet with the same name. */
export function observeDeployment(
  replicaSet: ReplicaSetProjection,
  pods: Iterable<ObservedPod>,
): ObservedDeployment {
  const instances = [...pods]
    .filter((pod) => pod.ownerUid === replicaSet.uid && pod.standing !== "omitted")
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  const reported = instances.map((pod) => ({
    k8sName: pod.name,
    address: addressOf(pod, replicaSet.namespace),
    cpuMillicores: BigInt(pod.cpuMillicores),
    memoryMib: BigInt(pod.memoryMib),
    status: statusOf(pod.standing),
    outdated: isOfOlderTemplate(pod, replicaSet),
    restarts: pod.restarts,
    createdAtMs: BigInt(pod.createdAtSeconds) * 1_000n,
    zone: pod.zone ?? "",
  }));
  const update = create(ReportDeploymentStatusRequest_UpdateSchema, {
    k8sName: replicaSet.name,
    instances: reported,
  });
  return { update, fingerprint: fingerprintOf(update), counts: countInstances(replicaSet, instances) };
}

function fingerprintOf({ k8sName, instances }: ReportDeploymentStatusRequest_Update): string {
  const facts = instances.map((instance) => [
    instance.k8sName,
    instance.address,
    String(instance.cpuMillicores),
    String(instance.memoryMib),
    instance.status,
    instance.outdated,
    instance.restarts,
    String(instance.createdAtMs),
    instance.zone,
  ]);
  return hashOf([k8sName, facts]);
}

function countInstances(
  replicaSet: ReplicaSetProjection,
  instances: readonly PodProjection[],
): InstanceCounts {
  const failures = instances.map(({ standing }) => standing).filter(isFailure);
  const [failure] = failures;
  return {
    wanted: replicaSet.replicas,
    total: instances.length,
    ready: instances.filter(({ standing }) => standing === "running").length,
    failed: failures.length,
    ofOlderTemplate: instances.filter((pod) => isOfOlderTemplate(pod, replicaSet)).length,
    ...(failure !== undefined && { failure }),
  };
}
