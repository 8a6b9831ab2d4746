// Judges a live pod: what makes it less isolated than krane's template, and who did that, as far as Kubernetes records it.
//
// In the spec of a pod, the API server lets people change the image and a few fields that do not lower its isolation, and add
// ephemeral containers. So what else lowers it was there when the pod was created: it came from admission, from an edited
// template or from somebody who created the pod by hand. Annotations can be added at any time.
import type { Pod } from "kubernetes-types/core/v1.js";
import { isRecord, ownerOfField } from "../../engine/field-owners.ts";
import type { PodWeakness } from "../../engine/pod-replacement.ts";
import type { ManagedFieldsEntry } from "../../kube/types.ts";
import { annotationKeys } from "../../model/labels.ts";
import { obstacleText } from "../../model/obstacle.ts";
import { printable } from "../../telemetry/scrub.ts";
import { type IsolatedPod, weaknessOf } from "./isolation.ts";
import { containerName } from "./pod-template.ts";

const managerCharsMax = 64;
// Both times are of one request, in whole seconds.
const creationSecondsMax = 1;

/** Undefined if it is isolated, apart from the sandbox, or is not judged. */
export function podWeakness(pod: Pod): PodWeakness | undefined {
  if (!isJudged(pod)) return undefined;
  const what = weaknessOf(pod as IsolatedPod, "");
  if (what === "") return undefined;
  const later = laterAnnotations(pod);
  const isFromCreation = weaknessOf(asCreated(pod, later), "") !== "";
  const changedBy = isFromCreation ? undefined : laterManager(pod, later);
  return { what: obstacleText(undefined, what), isFromCreation, changedBy: managerText(changedBy) };
}

/** Whether it is judged and runs outside of the sandbox, which may be right: its template decides. */
export function hasNoSandbox(pod: Pod): boolean {
  return isJudged(pod) && !pod.spec?.runtimeClassName;
}

/** Adds that it should run in the sandbox to what else makes it weak. */
export function withoutSandbox(weakness: PodWeakness | undefined): PodWeakness {
  const what = "runtimeClassName is missing";
  return {
    what: weakness === undefined ? what : `${what}, ${weakness.what}`,
    isFromCreation: true,
    changedBy: managerText(undefined),
  };
}

/** Pods without the mark come from an older agent's template, which may have been less isolated. */
function isJudged({ metadata, status }: Pod): boolean {
  if (metadata?.deletionTimestamp !== undefined) return false;
  if (status?.phase === "Failed" || status?.phase === "Succeeded") return false;
  return metadata?.annotations?.[annotationKeys.templateHash] !== undefined;
}

type Later = ReadonlyMap<string, ManagedFieldsEntry>;

/** The annotations that were added after the pod was created, with who added them. */
function laterAnnotations(pod: Pod): Later {
  const later = new Map<string, ManagedFieldsEntry>();
  for (const name in pod.metadata?.annotations ?? {}) {
    const owner = ownerOfField(pod, ["metadata", "annotations", name]);
    if (owner !== undefined && !isOfCreation(pod, owner)) later.set(name, owner);
  }
  return later;
}

/**
 * The image, if it may have been changed since the pod was created. One that a webhook chose at the creation is not: clusters
 * have those that pull from a mirror.
 */
export function laterImage(pod: Pod): string | undefined {
  const container = pod.spec?.containers.find(({ name }) => name === containerName);
  if (container?.image === undefined) return undefined;
  const item = { index: 0, item: { name: container.name } };
  const owner = ownerOfField(pod, ["spec", "containers", item, "image"]);
  return owner !== undefined && isOfCreation(pod, owner) ? undefined : container.image;
}

/** Whether the mark of its template may have been written since the pod was created, and so proves nothing. */
export function hasLaterMark(pod: Pod): boolean {
  if (pod.metadata?.annotations?.[annotationKeys.templateHash] === undefined) return false;
  const owner = ownerOfField(pod, ["metadata", "annotations", annotationKeys.templateHash]);
  return owner === undefined || !isOfCreation(pod, owner);
}

/** The entry of the request that created the pod, as long as nobody has changed anything else under the same name. */
function isOfCreation({ metadata }: Pod, { fieldsV1, subresource, time }: ManagedFieldsEntry): boolean {
  if (subresource || !isRecord(fieldsV1) || !("f:spec" in fieldsV1)) return false;
  return !(secondsOf(time) - secondsOf(metadata?.creationTimestamp) > creationSecondsMax);
}

/** NaN without a time. */
function secondsOf(time: string | undefined): number {
  // biome-ignore lint/style/noRestrictedGlobals: it reads a timestamp that Kubernetes wrote.
  return Date.parse(time ?? "") / 1_000;
}

function asCreated({ metadata, spec }: Pod, later: Later): IsolatedPod {
  const annotations = Object.entries(metadata?.annotations ?? {}).filter(([name]) => !later.has(name));
  const { ephemeralContainers: _, ...created } = spec ?? { containers: [] };
  return { metadata: { annotations: Object.fromEntries(annotations) }, spec: created };
}

function laterManager({ metadata }: Pod, later: Later): ManagedFieldsEntry | undefined {
  const debugged = metadata?.managedFields?.find(({ subresource }) => subresource === "ephemeralcontainers");
  return debugged ?? [...later].find(([name]) => name.startsWith("dev.gvisor."))?.[1];
}

function managerText(entry: ManagedFieldsEntry | undefined): string {
  if (entry?.manager === undefined) return "unknown";
  return `field manager ${JSON.stringify(printable(entry.manager).slice(0, managerCharsMax))}`;
}
