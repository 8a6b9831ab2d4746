// Who a pod is, from what stands in the cluster at this moment and from nothing else: neither a cache,
// which may be late by the seconds that a thief needs, nor what the caller says of itself.
//
// Labels alone prove little, because they are copied with every template that somebody reuses. So the pod
// has to be controlled by a ReplicaSet that krane's own field manager applied (K4), with the UID of the one
// that lives, and that one has to stand for the same deployment and environment.
//
// All of that can be written by whoever may apply ReplicaSets in some namespace, the name of the field manager
// too. So what is found here counts only together with desired state: see wanted-workload.ts.
//
// None of it is proof against whoever may create pods in the namespace: an owner reference can be written by hand. Such a pod passes until the ReplicaSet's controller ends it as one too many, so the right to create
// pods there is the right to the secrets there.
import type { Pod } from "kubernetes-types/core/v1.js";
import type { KubeApi } from "../kube/api.ts";
import { pods, replicaSets } from "../kube/resources.ts";
import type { KubeObject, OwnerReference } from "../kube/types.ts";
import { annotationKeys, labelKeys, managedBy } from "../model/labels.ts";
import { judgeOwnership } from "../model/ownership.ts";
import type { TokenSubject } from "./token-verdict.ts";

/** Why a pod is nobody whose secrets krane has. */
export type WorkloadRefusal =
  | "pod gone"
  | "pod replaced by another of its name"
  | "pod is being deleted"
  | "pod has ended"
  | "pod runs as another service account"
  | "pod is not managed by krane"
  | "pod does not say its deployment and environment"
  | "pod contradicts itself about its deployment"
  | "pod is not controlled by a ReplicaSet"
  | "ReplicaSet gone"
  | "ReplicaSet replaced by another of its name"
  | "ReplicaSet is being deleted"
  | "ReplicaSet is not krane's"
  | "ReplicaSet is of another deployment"
  | "ReplicaSet is of another environment";

export interface WorkloadIdentity {
  /** `namespace/name` of its ReplicaSet. */
  readonly key: string;
  readonly deploymentId: string;
  readonly environmentId: string;
}

export type IdentityOutcome =
  | { readonly kind: "known"; readonly identity: WorkloadIdentity }
  | { readonly kind: "refused"; readonly reason: WorkloadRefusal };

/** Rejects with a KubeApiError where the API server cannot be asked: not knowing is no refusal, and no consent. */
export async function identifyWorkload(
  subject: TokenSubject,
  api: KubeApi,
  signal: AbortSignal,
): Promise<IdentityOutcome> {
  const { namespace, podName } = subject;
  const pod = await api.get(pods, { namespace, name: podName }, {}, signal);
  if (pod === undefined) return refused("pod gone");
  const judged = judgePod(subject, pod);
  if (judged.kind === "refused") return judged;
  const { identity, owner } = judged;
  const replicaSet = await api.get(
    replicaSets,
    { namespace, name: owner.name },
    { detail: "metadata" },
    signal,
  );
  if (replicaSet === undefined) return refused("ReplicaSet gone");
  const flaw = findOwnerFlaw(replicaSet, owner, identity);
  return flaw === undefined ? { kind: "known", identity } : refused(flaw);
}

type PodOutcome =
  | { readonly kind: "candidate"; readonly identity: WorkloadIdentity; readonly owner: OwnerReference }
  | { readonly kind: "refused"; readonly reason: WorkloadRefusal };

function judgePod(subject: TokenSubject, { metadata, spec, status }: Pod): PodOutcome {
  if (metadata?.uid !== subject.podUid) return refused("pod replaced by another of its name");
  if (metadata.deletionTimestamp !== undefined) return refused("pod is being deleted");
  // An evicted pod stays in the API, and so does its token's life, after its last process has ended.
  if (status?.phase === "Failed" || status?.phase === "Succeeded") return refused("pod has ended");
  if (spec?.serviceAccountName !== subject.serviceAccount)
    return refused("pod runs as another service account");
  const labels = metadata.labels ?? {};
  if (labels[labelKeys.managedBy] !== managedBy) return refused("pod is not managed by krane");
  const deploymentId = labels[labelKeys.deploymentId];
  const environmentId = labels[labelKeys.environmentId];
  if (!deploymentId || !environmentId) return refused("pod does not say its deployment and environment");
  const annotated = metadata.annotations?.[annotationKeys.deploymentId];
  if (annotated !== undefined && annotated !== deploymentId)
    return refused("pod contradicts itself about its deployment");
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
  if (metadata?.uid !== owner.uid) return "ReplicaSet replaced by another of its name";
  if (metadata.deletionTimestamp !== undefined) return "ReplicaSet is being deleted";
  if (judgeOwnership(metadata).kind !== "ours") return "ReplicaSet is not krane's";
  const labels = metadata.labels ?? {};
  if (labels[labelKeys.deploymentId] !== deploymentId) return "ReplicaSet is of another deployment";
  if (labels[labelKeys.environmentId] !== environmentId) return "ReplicaSet is of another environment";
  return undefined;
}

function refused(reason: WorkloadRefusal) {
  return { kind: "refused", reason } as const;
}
