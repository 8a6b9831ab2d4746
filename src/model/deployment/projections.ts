// What krane remembers of a live ReplicaSet and of its pods: a few short fields, because a cluster has
// thousands of pods and a whole one takes twenty times the memory. A pod is judged when it is seen; what
// is kept is the verdict, not the evidence.
import type { ReplicaSet } from "kubernetes-types/apps/v1.js";
import type { Container, ContainerStatus, Pod } from "kubernetes-types/core/v1.js";
import { annotationKeys, labelKeys } from "../labels.ts";
import { judgeOwnership, type Ownership } from "../ownership.ts";
import { parseMebibytes, parseMillicores } from "../quantities.ts";
import { defaultPort } from "./spec.ts";

export interface ReplicaSetProjection {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly ownership: Ownership;
  /** Of the selector, which cannot be edited; the label of the same meaning can. */
  readonly deploymentId: string | undefined;
  readonly workspaceId: string | undefined;
  readonly environmentId: string | undefined;
  readonly port: number;
  readonly replicas: number;
  readonly manifestHash: string | undefined;
  readonly templateHash: string | undefined;
  /** RFC 3339, as Kubernetes writes it. */
  readonly createdAt: string | undefined;
  readonly deleting: boolean;
}

export interface PodProjection {
  readonly namespace: string;
  readonly name: string;
  readonly deploymentId: string | undefined;
  /** The uid of its controller. */
  readonly ownerUid: string | undefined;
  /** Absent on pods that an older agent's template made. */
  readonly templateHash: string | undefined;
  readonly standing: PodStanding;
  /** Why it fails, in the word of Kubernetes. */
  readonly reason: string | undefined;
  readonly address: string;
  readonly cpuMillicores: bigint;
  readonly memoryMib: bigint;
}

/** "omitted": not an instance, because it is over, on its way out, or not yet on the network. */
export type PodStanding = "omitted" | "pending" | "running" | "failed";

// Waiting for one of these, a container does not come up by itself soon. They count whatever the phase
// says: a pod that crashes in a loop is "Running" most of the time.
const failures: ReadonlySet<string> = new Set([
  "CrashLoopBackOff",
  "ImagePullBackOff",
  "ErrImagePull",
  "InvalidImageName",
  "CreateContainerConfigError",
]);

export function projectReplicaSet(replicaSet: ReplicaSet): ReplicaSetProjection {
  const { metadata, spec } = replicaSet;
  const template = spec?.template;
  const labels = template?.metadata?.labels;
  return {
    namespace: metadata?.namespace ?? "",
    name: metadata?.name ?? "",
    uid: metadata?.uid ?? "",
    ownership: judgeOwnership(metadata),
    deploymentId: spec?.selector.matchLabels?.[labelKeys.deploymentId],
    workspaceId: labels?.[labelKeys.workspaceId],
    environmentId: labels?.[labelKeys.environmentId],
    port: portOf(template?.spec?.containers[0]),
    // The default of Kubernetes.
    replicas: spec?.replicas ?? 1,
    manifestHash: metadata?.annotations?.[annotationKeys.manifestHash],
    templateHash: template?.metadata?.annotations?.[annotationKeys.templateHash],
    createdAt: metadata?.creationTimestamp,
    deleting: metadata?.deletionTimestamp !== undefined,
  };
}

export function projectPod(pod: Pod): PodProjection {
  const { metadata, spec } = pod;
  const container = spec?.containers[0];
  const reason = failureOf(pod);
  return {
    namespace: metadata?.namespace ?? "",
    name: metadata?.name ?? "",
    deploymentId: metadata?.labels?.[labelKeys.deploymentId],
    ownerUid: metadata?.ownerReferences?.find((owner) => owner.controller)?.uid,
    templateHash: metadata?.annotations?.[annotationKeys.templateHash],
    standing: standingOf(pod, reason),
    reason,
    address: addressOf(pod, portOf(container)),
    cpuMillicores: parseMillicores(container?.resources?.limits?.["cpu"]),
    memoryMib: parseMebibytes(container?.resources?.limits?.["memory"]),
  };
}

function standingOf({ metadata, status }: Pod, failure: string | undefined): PodStanding {
  if (metadata?.deletionTimestamp !== undefined) return "omitted";
  if (status?.phase === "Failed" || status?.phase === "Succeeded") return "omitted";
  if (failure !== undefined) return "failed";
  if (!status?.podIP) return "omitted";
  const ready = status.conditions?.find(({ type }) => type === "ContainersReady");
  return status.phase === "Running" && ready?.status === "True" ? "running" : "pending";
}

function failureOf({ status }: Pod): string | undefined {
  const statuses: ContainerStatus[] = [
    ...(status?.initContainerStatuses ?? []),
    ...(status?.containerStatuses ?? []),
  ];
  const reasons = statuses.map(({ state }) => state?.waiting?.reason ?? "");
  return reasons.find((reason) => failures.has(reason));
}

/**
 * The name that the DNS of the cluster has for the address of a pod. The control plane keeps addresses
 * unique, so a failing pod that never got one is known by its own name in that place; two such pods
 * with an empty address would overwrite each other.
 */
function addressOf({ metadata, status }: Pod, port: number): string {
  const host = status?.podIP ? status.podIP.replaceAll(/[.:]/g, "-") : metadata?.name;
  return `${host}.${metadata?.namespace}.pod.cluster.local:${port}`;
}

/** A pod's own port, not that of the template: pods of an older template still listen where they did. */
function portOf(container: Container | undefined): number {
  return container?.ports?.[0]?.containerPort ?? defaultPort;
}
