// What krane remembers of the live objects of sentinels: who each belongs to, and of the apps/v1
// Deployment the numbers that its status is told from.
import type { Deployment, DeploymentCondition } from "kubernetes-types/apps/v1.js";
import type { KubeObject } from "../../kube/types.ts";
import { type OrderMark, readOrderMark } from "../../model/kept-order.ts";
import { annotationKeys, labelKeys } from "../../model/labels.ts";
import { finalizersOf, obstacleText, withoutPodName } from "../../model/obstacle.ts";
import { judgeOwnership, type Ownership } from "../../model/ownership.ts";
import { sentinelNameOf } from "./identity.ts";
import { sentinelContainerName } from "./pod-template.ts";

export interface SentinelObjectProjection {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** The sentinel that it belongs to by its name. */
  readonly sentinelName: string;
  readonly sentinelId: string | undefined;
  readonly ownership: Ownership;
  readonly manifestHash: string | undefined;
  /** RFC 3339, as Kubernetes writes it. */
  readonly createdAt: string | undefined;
  readonly deleting: boolean;
}

/** Its id is that of the selector, which cannot be edited; the label of the same meaning can. */
export interface SentinelDeploymentProjection extends SentinelObjectProjection {
  readonly image: string;
  readonly replicas: number;
  /** Whether the numbers below are about the present spec. */
  readonly isStatusCurrent: boolean;
  readonly replicasTotal: number;
  readonly replicasUpdated: number;
  readonly replicasAvailable: number;
  readonly replicasUnavailable: number;
  /** Why it does not come up, in the word of Kubernetes. */
  readonly failure: string | undefined;
  /** The same with the message that goes with it; absent where there is none. */
  readonly obstacle?: string;
  /** The finalizers that its deletion waits for. */
  readonly heldBy?: string;
  /** Absent on what the stream brought. */
  readonly ordered?: OrderMark;
}

/**
 * The id of a companion is a label, which anybody can edit. A companion that krane applied belongs to
 * whoever holds its name, and an edited id is drift; the id serves to ask whether a companion that has
 * lost its Deployment is still wanted.
 */
export interface SentinelCompanionProjection extends SentinelObjectProjection {
  /** Empty on gossip objects, and on others that lost their owner reference. */
  readonly ownerUids: readonly string[];
}

export function projectSentinelDeployment(deployment: Deployment): SentinelDeploymentProjection {
  const { metadata, spec, status } = deployment;
  const containers = spec?.template.spec?.containers ?? [];
  const ordered = readOrderMark(metadata, "");
  const failure = failureOf(deployment);
  const heldBy = finalizersOf(metadata);
  return {
    ...projectObject(deployment),
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
    ...(ordered && { ordered }),
  };
}

export function projectSentinelCompanion(object: KubeObject): SentinelCompanionProjection {
  const { metadata } = object;
  return {
    ...projectObject(object),
    sentinelId: metadata?.labels?.[labelKeys.sentinelId],
    ownerUids: (metadata?.ownerReferences ?? []).map(({ uid }) => uid),
  };
}

function projectObject({ metadata }: KubeObject): Omit<SentinelObjectProjection, "sentinelId"> {
  const name = metadata?.name ?? "";
  return {
    namespace: metadata?.namespace ?? "",
    name,
    uid: metadata?.uid ?? "",
    sentinelName: sentinelNameOf(name),
    ownership: judgeOwnership(metadata),
    manifestHash: metadata?.annotations?.[annotationKeys.manifestHash],
    createdAt: metadata?.creationTimestamp,
    deleting: metadata?.deletionTimestamp !== undefined,
  };
}

/** Pods that cannot be created tell more than a roll-out that is therefore late. */
function failureOf({ status }: Deployment): DeploymentCondition | undefined {
  const conditions = status?.conditions ?? [];
  const refused = conditions.find(({ type, status }) => type === "ReplicaFailure" && status === "True");
  const stuck = conditions.find(({ type, status }) => type === "Progressing" && status === "False");
  return refused ?? stuck;
}
