// Identifies the deployment and environment of a pod from the live cluster, and ignores what the caller claims. The pod is
// read on every call, because an attacker could exploit a cache that is a few seconds stale. Its ReplicaSet may be one that
// was read before; see known-replica-sets.ts.
//
// Labels prove nothing, because anybody can write them. So the pod must be controlled by a live ReplicaSet with a
// matching UID, which krane has sealed for this deployment and environment (K4). A ReplicaSet with krane's marks but
// without a seal, as an older krane leaves it, counts only where desired state names it; see wanted-workload.ts.
//
// The pod must also look like one that the ReplicaSet made: the same image and template, and no less isolation. So a pod
// with an owner reference written by hand gets nothing. But someone who may create pods in the namespace can copy all of
// that, and such a pod passes until the ReplicaSet's controller deletes it as surplus. So the right to create pods in a
// namespace is the right to its secrets.
import type { ReplicaSet } from "kubernetes-types/apps/v1.js";
import type { Pod } from "kubernetes-types/core/v1.js";
import { weaknessBeyond } from "../kinds/deployment/isolation.ts";
import type { KubeApi } from "../kube/api.ts";
import { pods, replicaSets } from "../kube/resources.ts";
import type { OwnerReference } from "../kube/types.ts";
import { annotationKeys, fieldManager, labelKeys, managedBy } from "../model/labels.ts";
import { isClaimable, judgeOwnership } from "../model/ownership.ts";
import type { Seal, SealReading } from "../model/seal.ts";
import type { KnownReplicaSets } from "./known-replica-sets.ts";
import { judgeOriginalPod, type OriginalPod } from "./original-pods.ts";
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
  | "ReplicaSet belongs to another environment"
  | PodFlaw;

export interface WorkloadIdentity {
  /** `namespace/name` of its ReplicaSet. */
  readonly key: string;
  readonly deploymentId: string;
  readonly environmentId: string;
  /** Proven by the seal of the ReplicaSet. */
  readonly isSealed: boolean;
  /** The original krane made the pod; see original-pods.ts. */
  readonly original: OriginalPod;
}

export interface IdentityDeps {
  readonly api: KubeApi;
  readonly seal: Seal;
  readonly known: KnownReplicaSets;
}

export type IdentityOutcome =
  | { readonly kind: "known"; readonly identity: WorkloadIdentity }
  | { readonly kind: "refused"; readonly reason: WorkloadRefusal };

/** Rejects with a KubeApiError when the API server cannot be reached: not knowing is neither a refusal nor consent. */
export async function identifyWorkload(
  subject: TokenSubject,
  deps: IdentityDeps,
  signal: AbortSignal,
): Promise<IdentityOutcome> {
  const { namespace, podName } = subject;
  const pod = await deps.api.get(pods, { namespace, name: podName }, {}, signal);
  if (pod === undefined) return refused("pod not found");
  const flaw = findSubjectFlaw(subject, pod);
  return flaw === undefined ? identifyPod(pod, deps, signal) : refused(flaw);
}

/** For a pod that was just read. It may have ended, or be about to end. */
export async function identifyPod(
  pod: Pod,
  { api, seal, known }: IdentityDeps,
  signal: AbortSignal,
): Promise<IdentityOutcome> {
  const judged = judgePod(pod);
  if (judged.kind === "refused") return judged;
  const { candidate, owner } = judged;
  const namespace = pod.metadata?.namespace ?? "";
  const remembered = known.get(candidate.key, owner.uid);
  const byRemembered = remembered && judgeOwned(pod, remembered, judged, seal);
  if (byRemembered?.kind === "known") return byRemembered;
  const replicaSet = await api.get(replicaSets, { namespace, name: owner.name }, {}, signal);
  if (replicaSet === undefined) return refused("ReplicaSet not found");
  known.note(candidate.key, replicaSet);
  return judgeOwned(pod, replicaSet, judged, seal);
}

function judgeOwned(
  pod: Pod,
  replicaSet: ReplicaSet,
  { candidate, owner }: Owned,
  seal: Seal,
): IdentityOutcome {
  const reading = seal.read(replicaSets, replicaSet.metadata);
  const flaw = findOwnerFlaw(replicaSet, owner, candidate, reading) ?? findPodFlaw(pod, replicaSet);
  if (flaw !== undefined) return refused(flaw);
  const isSealed = reading.kind === "valid";
  return { kind: "known", identity: { ...candidate, isSealed, original: judgeOriginalPod(pod, reading) } };
}

type Candidate = Omit<WorkloadIdentity, "isSealed" | "original">;

/** What a pod says of itself, and the ReplicaSet that has to confirm it. */
interface Owned {
  readonly candidate: Candidate;
  readonly owner: OwnerReference;
}

type PodOutcome =
  | ({ readonly kind: "candidate" } & Owned)
  | { readonly kind: "refused"; readonly reason: WorkloadRefusal };

function findSubjectFlaw(
  subject: TokenSubject,
  { metadata, spec, status }: Pod,
): WorkloadRefusal | undefined {
  if (metadata?.uid !== subject.podUid) return "pod was replaced by another with the same name";
  if (metadata.deletionTimestamp !== undefined) return "pod is being deleted";
  // An evicted pod stays in the API, and its token stays valid, after its last process has exited.
  if (status?.phase === "Failed" || status?.phase === "Succeeded") return "pod has terminated";
  if (spec?.serviceAccountName !== subject.serviceAccount) return "pod runs as another service account";
  return undefined;
}

function judgePod({ metadata }: Pod): PodOutcome {
  const labels = metadata?.labels ?? {};
  if (labels[labelKeys.managedBy] !== managedBy) return refused("pod is not managed by krane");
  const deploymentId = labels[labelKeys.deploymentId];
  const environmentId = labels[labelKeys.environmentId];
  if (!deploymentId || !environmentId) return refused("pod has no deployment or environment label");
  const annotated = metadata?.annotations?.[annotationKeys.deploymentId];
  if (annotated !== undefined && annotated !== deploymentId)
    return refused("pod's deployment label and annotation differ");
  const owner = metadata?.ownerReferences?.find(({ controller }) => controller === true);
  if (owner?.kind !== replicaSets.kind || owner.apiVersion !== `${replicaSets.group}/${replicaSets.version}`)
    return refused("pod is not controlled by a ReplicaSet");
  const key = `${metadata?.namespace ?? ""}/${owner.name}`;
  return { kind: "candidate", candidate: { key, deploymentId, environmentId }, owner };
}

function findOwnerFlaw(
  { metadata }: ReplicaSet,
  owner: OwnerReference,
  { deploymentId, environmentId }: Candidate,
  reading: SealReading,
): WorkloadRefusal | undefined {
  if (metadata?.uid !== owner.uid) return "ReplicaSet was replaced by another with the same name";
  if (metadata.deletionTimestamp !== undefined) return "ReplicaSet is being deleted";
  if (!isClaimable(judgeOwnership(reading, metadata))) return "ReplicaSet is not krane's";
  const labels = metadata.labels ?? {};
  const sealed = reading.kind === "valid" ? reading.ids : undefined;
  const named = sealed ?? {
    id: labels[labelKeys.deploymentId],
    environmentId: labels[labelKeys.environmentId],
  };
  if (named.id !== deploymentId) return "ReplicaSet belongs to another deployment";
  if (named.environmentId !== environmentId) return "ReplicaSet belongs to another environment";
  return undefined;
}

function refused(reason: WorkloadRefusal) {
  return { kind: "refused", reason } as const;
}

export type PodFlaw =
  | "pod is less isolated than its template"
  | "pod runs as another service account than its template"
  | "pod is not from the template of its ReplicaSet";

/**
 * Compares a pod that asks for secrets with the template of its ReplicaSet. An owner reference can be written by hand; a
 * pod that the ReplicaSet made has its template's image, mark and isolation.
 *
 * ReplicaSets do not replace pods when their template changes, so a pod that existed before krane's last write may be of an
 * older template. The API server sets both times. Only the isolation of such a pod is compared.
 */
export function findPodFlaw(pod: Pod, replicaSet: ReplicaSet): PodFlaw | undefined {
  const template = replicaSet.spec?.template;
  const [made, wanted] = [pod.spec, template?.spec];
  if (made === undefined || wanted === undefined) return "pod is not from the template of its ReplicaSet";
  if ((made.serviceAccountName ?? "default") !== (wanted.serviceAccountName ?? "default"))
    return "pod runs as another service account than its template";
  if (weaknessBeyond({ ...pod, spec: made }, { ...template, spec: wanted }) !== "")
    return "pod is less isolated than its template";
  if (isOlderThanLastApply(pod, replicaSet)) return undefined;
  const mark = template?.metadata?.annotations?.[annotationKeys.templateHash];
  const isMarked = pod.metadata?.annotations?.[annotationKeys.templateHash] === mark;
  const hasImages = wanted.containers.every(({ name, image }) =>
    made.containers.some((container) => container.name === name && container.image === image),
  );
  return isMarked && hasImages ? undefined : "pod is not from the template of its ReplicaSet";
}

/** Times in the API have whole seconds, so one within the same second counts as older. */
function isOlderThanLastApply(pod: Pod, { metadata }: ReplicaSet): boolean {
  const appliedAt = (metadata?.managedFields ?? [])
    .filter(
      ({ manager, operation, subresource }) =>
        manager === fieldManager && operation === "Apply" && !subresource,
    )
    .map(({ time = "" }) => time)
    .sort()
    .at(-1);
  const createdAt = pod.metadata?.creationTimestamp;
  return appliedAt !== undefined && createdAt !== undefined && createdAt <= appliedAt;
}
