// Compares a pod that asks for secrets with the template of its ReplicaSet. An owner reference can be written by hand; a
// pod that the ReplicaSet made has its template's image, mark and isolation.
//
// ReplicaSets do not replace pods when their template changes, so a pod that existed before krane's last write may be of an
// older template. The API server sets both times. Only the isolation of such a pod is compared.
import type { ReplicaSet } from "kubernetes-types/apps/v1.js";
import type { Pod } from "kubernetes-types/core/v1.js";
import { weaknessBeyond } from "../kinds/deployment/isolation.ts";
import { annotationKeys, fieldManager } from "../model/labels.ts";

export type PodFlaw =
  | "pod is less isolated than its template"
  | "pod runs as another service account than its template"
  | "pod is not from the template of its ReplicaSet";

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
