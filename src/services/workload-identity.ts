// Identifies the deployment and environment of a pod from the live cluster. It uses no cache, which an attacker could
// exploit while it is a few seconds stale, and ignores what the caller claims.
//
// Labels alone prove little, because people copy them with templates. So the pod must be controlled by a live ReplicaSet
// that krane's field manager applied (K4), with a matching UID, deployment and environment.
//
// Anyone who may apply ReplicaSets in a namespace can write all of that, including the name of the field manager. So the
// result counts only together with desired state; see wanted-workload.ts.
//
// None of this protects against someone who may create pods in the namespace, because an owner reference can be written
// by hand. Such a pod passes until the ReplicaSet's controller deletes it as surplus. So the right to create pods in a
// namespace is the right to its secrets.
import type { Pod } from "kubernetes-types/core/v1.js";
import type { KubeApi } from "../kube/api.ts";
import { pods, replicaSets } from "../kube/resources.ts";
import type { KubeObject, OwnerReference } from "../kube/types.ts";
import { annotationKeys, labelKeys, managedBy } from "../model/labels.ts";
import { judgeOwnership } from "../model/ownership.ts";
import type { TokenSubject } from "./token-verdict.ts";

/** Why a pod gets no secrets. */
export type WorkloadRefusal =
  | "pod not found"
  | "pod was replaced by another with the same name"
  | "pod is being deleted"
  | "pod has terminated"
  | "pod runs as another service account"
  | "pod is not managed by krane"
  | "pod has no deployment or environment label"
  | "pod's deployment label and annotation differ"
  | "pod is not controlled by a ReplicaSet"
  | "ReplicaSet not found"
  | "ReplicaSet was replaced by another with the same name"
  | "ReplicaSet is being deleted"
  | "ReplicaSet is not krane's"
  | "ReplicaSet belongs to another deployment"
  | "ReplicaSet belongs to another environment";

export interface WorkloadIdentity {
  /** `namespace/name` of its ReplicaSet. */
  readonly key: string;
  readonly deploymentId: string;
  readonly environmentId: string;
}

export type IdentityOutcome =
  | { readonly kind: "known"; readonly identity: WorkloadIdentity }
  | { readonly kind: "refused"; readonly reason: WorkloadRefusal };

/** Rejects with a KubeApiError when the API server cannot be reached: not knowing is neither a refusal nor consent. */
export async function identifyWorkload(
  subject: TokenSubject,
  api: KubeApi,
  signal: AbortSignal,
): Promise<IdentityOutcome> {
  const { namespace, podName } = subject;
  const pod = await api.get(pods, { namespace, name: podName }, {}, signal);
  if (pod === undefined) return refused("pod not found");
  const judged = judgePod(subject, pod);
  if (judged.kind === "refused") return judged;
  const { identity, owner } = judged;
  const replicaSet = await api.get(
    replicaSets,
    { namespace, name: owner.name },
    { detail: "metadata" },
    signal,
  );
  if (replicaSet === undefined) return refused("ReplicaSet not found");
  const flaw = findOwnerFlaw(replicaSet, owner, identity);
  return flaw === undefined ? { kind: "known", identity } : refused(flaw);
}

type PodOutcome =
  | { readonly kind: "candidate"; readonly identity: WorkloadIdentity; readonly owner: OwnerReference }
  | { readonly kind: "refused"; readonly reason: WorkloadRefusal };

function judgePod(subject: TokenSubject, { metadata, spec, status }: Pod): PodOutcome {
  if (metadata?.uid !== subject.podUid) return refused("pod was replaced by another with the same name");
  if (metadata.deletionTimestamp !== undefined) return refused("pod is being deleted");
  // An evicted pod stays in the API, and its token stays valid, after its last process has exited.
  if (status?.phase === "Failed" || status?.phase === "Succeeded") return refused("pod has terminated");
  if (spec?.serviceAccountName !== subject.serviceAccount)
    return refused("pod runs as another service account");
  const labels = metadata.labels ?? {};
  if (labels[labelKeys.managedBy] !== managedBy) return refused("pod is not managed by krane");
  const deploymentId = labels[labelKeys.deploymentId];
  const environmentId = labels[labelKeys.environmentId];
  if (!deploymentId || !environmentId) return refused("pod has no deployment or environment label");
  const annotated = metadata.annotations?.[annotationKeys.deploymentId];
  if (annotated !== undefined && annotated !== deploymentId)
    return refused("pod's deployment label and annotation differ");
  const owner = metadata.ownerReferences?.find(({ controller }) => controller === true);
  if (owner?.kind !== replicaSets.kind || owner.apiVersion !== `${replicaSets.group}/${replicaSets.version}`)
    return refused("pod is not controlled by a ReplicaSet");
  const key = `${subject.namespace}/${owner.name}`;
  return { kind: "candidate", identity: { key, deploymentId, environmentId }, owner };
}

function findOwnerFlaw(
  { metadata }: KubeObject,
  owner: OwnerReference,
  { deploymentId, environmentId }: WorkloadIdentity,
): WorkloadRefusal | undefined {
  if (metadata?.uid !== owner.uid) return "ReplicaSet was replaced by another with the same name";
  if (metadata.deletionTimestamp !== undefined) return "ReplicaSet is being deleted";
  if (judgeOwnership(metadata).kind !== "ours") return "ReplicaSet is not krane's";
  const labels = metadata.labels ?? {};
  if (labels[labelKeys.deploymentId] !== deploymentId) return "ReplicaSet belongs to another deployment";
  if (labels[labelKeys.environmentId] !== environmentId) return "ReplicaSet belongs to another environment";
  return undefined;
}

function refused(reason: WorkloadRefusal) {
  return { kind: "refused", reason } as const;
}
