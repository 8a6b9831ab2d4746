// The parts of live sentinel objects that krane caches: the sentinel and the owner of each object, and the numbers of
// the apps/v1 Deployment that status reports are built from.
import type { Deployment, DeploymentCondition } from "kubernetes-types/apps/v1.js";
import { appsDeployments } from "../../kube/resources.ts";
import type { KubeObject, ResourceKind } from "../../kube/types.ts";
import { labelKeys } from "../../model/labels.ts";
import { manifestHashOf } from "../../model/manifest-hash.ts";
import { finalizersOf, obstacleText, withoutPodName } from "../../model/obstacle.ts";
import { judgeOwnership, type Ownership } from "../../model/ownership.ts";
import type { Seal, SealReading } from "../../model/seal.ts";
import { sentinelNameOf } from "./identity.ts";
import { type OriginalTemplate, originalTemplateOf } from "./original-template.ts";
import { sentinelContainerName } from "./pod-template.ts";

export interface SentinelObjectProjection {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** The sentinel that it belongs to, derived from its name. */
  readonly sentinelName: string;
  readonly sentinelId: string | undefined;
  readonly ownership: Ownership;
  readonly manifestHash: string | undefined;
  /** RFC 3339, as Kubernetes writes it. */
  readonly createdAt: string | undefined;
  readonly deleting: boolean;
}

/** Its id comes from the selector, which is immutable; the label with the same id can be edited. */
export interface SentinelDeploymentProjection extends SentinelObjectProjection {
  readonly image: string;
  readonly replicas: number;
  /** Whether the numbers below are for the current spec. */
  readonly isStatusCurrent: boolean;
  readonly replicasTotal: number;
  readonly replicasUpdated: number;
  readonly replicasAvailable: number;
  readonly replicasUnavailable: number;
  /** Set if its template is the original's. */
  readonly original?: OriginalTemplate;
  /** Kubernetes' reason why its pods do not become ready. */
  readonly failure: string | undefined;
  /** The reason with its message; absent if nothing fails. */
  readonly obstacle?: string;
  /** The finalizers that its deletion waits for. */
  readonly heldBy?: string;
}

/**
 * The id of a companion comes from its seal; without one, from a label, which anyone can edit. A companion of krane's
 * belongs to the sentinel that has its name, and an edited label is drift. The id is used to look up whether a companion
 * that has lost its Deployment is still wanted.
 */
export interface SentinelCompanionProjection extends SentinelObjectProjection {
  /** Empty for gossip objects, and for others that lost their owner reference. */
  readonly ownerUids: readonly string[];
}

export function projectSentinelDeployment(deployment: Deployment, seal: Seal): SentinelDeploymentProjection {
  const { metadata, spec, status } = deployment;
  const containers = spec?.template.spec?.containers ?? [];
  const failure = failureOf(deployment);
  const heldBy = finalizersOf(metadata);
  const reading = seal.read(appsDeployments, metadata);
  const object = projectObject(deployment, reading);
  const original = originalOf(deployment, object.ownership, reading);
  return {
    ...object,
    ...(original && { original }),
    sentinelId: spec?.selector.matchLabels?.[labelKeys.sentinelId],
    image: containers.find(({ name }) => name === sentinelContainerName)?.image ?? "",
    // The default of Kubernetes.
    replicas: spec?.replicas ?? 1,
    isStatusCurrent: (status?.observedGeneration ?? 0) >= (metadata?.generation ?? 0),
    replicasTotal: status?.replicas ?? 0,
    replicasUpdated: status?.updatedReplicas ?? 0,
    replicasAvailable: status?.availableReplicas ?? 0,
    replicasUnavailable: status?.unavailableReplicas ?? 0,
    failure: failure?.reason,
    ...(failure && {
      obstacle: obstacleText(failure.reason, withoutPodName(failure.message, metadata?.name)),
    }),
    ...(heldBy !== undefined && { heldBy }),
  };
}

/**
 * The template of a sentinel that may be adopted, or of an adopted one whose seal says that it was kept then. Otherwise krane
 * wrote the template: what it lacks, somebody removed.
 */
function originalOf(
  deployment: Deployment,
  ownership: Ownership,
  reading: SealReading,
): OriginalTemplate | undefined {
  if (ownership.kind === "unsealed") return originalTemplateOf(deployment);
  const kept = reading.kind === "valid" && reading.isAdopted ? reading.ids.keptTemplate : undefined;
  return kept === undefined ? undefined : originalTemplateOf(deployment, kept);
}

export function projectSentinelCompanion(
  object: KubeObject,
  kind: ResourceKind,
  seal: Seal,
): SentinelCompanionProjection {
  const { metadata } = object;
  const reading = seal.read(kind, metadata);
  return {
    ...projectObject(object, reading),
    sentinelId: reading.kind === "valid" ? reading.ids.id : metadata?.labels?.[labelKeys.sentinelId],
    ownerUids: (metadata?.ownerReferences ?? []).map(({ uid }) => uid),
  };
}

function projectObject(
  { metadata }: KubeObject,
  reading: SealReading,
): Omit<SentinelObjectProjection, "sentinelId"> {
  const name = metadata?.name ?? "";
  return {
    namespace: metadata?.namespace ?? "",
    name,
    uid: metadata?.uid ?? "",
    sentinelName: sentinelNameOf(name),
    ownership: judgeOwnership(reading, metadata),
    manifestHash: manifestHashOf({ metadata }),
    createdAt: metadata?.creationTimestamp,
    deleting: metadata?.deletionTimestamp !== undefined,
  };
}

/** Rejected pods come first: they explain why a rollout is stuck. */
function failureOf({ status }: Deployment): DeploymentCondition | undefined {
  const conditions = status?.conditions ?? [];
  const refused = conditions.find(({ type, status }) => type === "ReplicaFailure" && status === "True");
  const stuck = conditions.find(({ type, status }) => type === "Progressing" && status === "False");
  return refused ?? stuck;
}
