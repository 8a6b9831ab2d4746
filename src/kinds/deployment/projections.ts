// The parts of live ReplicaSets and pods that krane caches: a few short fields, because a cluster has thousands of pods
// and a whole one takes twenty times the memory. A pod is judged when it is received; only the result is kept.
import type { ReplicaSet } from "kubernetes-types/apps/v1.js";
import type { Container, ContainerStatus, Pod, PodCondition, PodStatus } from "kubernetes-types/core/v1.js";
import type { PodWeakness } from "../../engine/pod-replacement.ts";
import { replicaSets } from "../../kube/resources.ts";
import { keptText } from "../../model/kept-text.ts";
import { annotationKeys, labelKeys } from "../../model/labels.ts";
import { manifestHashOf, templateHashOf } from "../../model/manifest-hash.ts";
import { finalizersOf, obstacleText, withoutPodName } from "../../model/obstacle.ts";
import { judgeOwnership, type Ownership } from "../../model/ownership.ts";
import { parseMebibytes, parseMillicores } from "../../model/quantities.ts";
import type { Seal } from "../../model/seal.ts";
import { type Essence, essenceOf, isSameEssence } from "./original-pods.ts";
import { orphanOf } from "./orphaned-pods.ts";
import { runtimeClassName } from "./pod-template.ts";
import { hasLaterMark, hasNoSandbox, laterImage, podWeakness } from "./pod-weakness.ts";
import { defaultPort } from "./spec.ts";

export interface ReplicaSetProjection {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly generation: number;
  readonly ownership: Ownership;
  /** From the selector, which is immutable; the label with the same id can be edited. */
  readonly deploymentId: string | undefined;
  readonly workspaceId: string | undefined;
  readonly environmentId: string | undefined;
  readonly port: number;
  readonly replicas: number;
  readonly manifestHash: string | undefined;
  readonly templateHash: string | undefined;
  readonly image: string | undefined;
  /** What runs in its pods; only where pods of the original may be left. */
  readonly essence?: Essence;
  /** Its template asks for the sandbox. */
  readonly isSandboxed: boolean;
  /** RFC 3339, as Kubernetes writes it. */
  readonly createdAt: string | undefined;
  readonly deleting: boolean;
  /** Why the server rejects its pods. */
  readonly refusal?: string;
  /** The finalizers that its deletion waits for. */
  readonly heldBy?: string;
  /** Some krane held it at fewer pods than wanted. */
  readonly isHeld?: true;
}

/** Without its name, which is in the cache key already. */
export interface PodProjection {
  /** Its controller. */
  readonly ownerUid: string | undefined;
  readonly ownerName: string | undefined;
  /** The key of the deployment that it is from; only if the ReplicaSet of that no longer controls it. */
  readonly orphanOf?: string;
  /** Undefined for pods from the template of an older agent. */
  readonly templateHash: string | undefined;
  /** What runs in it; only without a template hash. */
  readonly essence?: Essence;
  /** Its template hash may have been written since the pod was created, so nobody knows its template. */
  readonly isRemarked?: true;
  /** Its image, if it may have been changed since the pod was created. */
  readonly laterImage?: string;
  readonly standing: PodStanding;
  /** Host and port; see addressOf. */
  readonly endpoint: string;
  readonly cpuMillicores: number;
  readonly memoryMib: number;
  /** Of all of its containers. */
  readonly restarts: number;
  /** Since 1970; 0 if unknown. */
  readonly createdAtSeconds: number;
  /** Of its node. Undefined before Kubernetes 1.35, which does not label pods with it. */
  readonly zone: string | undefined;
  /** Why it cannot run; absent if it can, so that a healthy pod takes no extra memory. */
  readonly obstacle?: string;
  /** What makes it less isolated than krane's template; absent if nothing does. */
  readonly weakness?: PodWeakness;
  /** It runs outside of the sandbox, which is weakness if the template that it comes from asks for it. */
  readonly isUnsandboxed?: true;
}

/** "omitted": not an instance, because it has finished, is being deleted, or has no address yet. */
export type PodStanding = "omitted" | "pending" | "running" | PodFailure;

/** Kubernetes' reason why it fails. */
export type PodFailure = (typeof failures)[number];

export function isFailure(word: string | undefined): word is PodFailure {
  return failures.some((failure) => failure === word);
}

const zoneLabel = "topology.kubernetes.io/zone";

// A projection starts as one literal with what every object has, and gets the rest afterwards: with a spread in the
// literal, V8 leaves the result two thirds larger.
type Writable<T> = { -readonly [Name in keyof T]: T[Name] };

/** Interns a string. */
type Share = <S extends string | undefined>(text: S) => S;

// A container that waits for one of these reasons will not start soon. They count in any phase: a crash-looping pod is
// "Running" most of the time.
const failures = [
  "CrashLoopBackOff",
  "ImagePullBackOff",
  "ErrImagePull",
  "InvalidImageName",
  "CreateContainerConfigError",
] as const;

export function projectReplicaSet(replicaSet: ReplicaSet, seal: Seal): ReplicaSetProjection {
  const { metadata, spec } = replicaSet;
  const template = spec?.template;
  const labels = template?.metadata?.labels;
  const refusal = refusalOf(replicaSet);
  const heldBy = finalizersOf(metadata);
  const deploymentId = spec?.selector.matchLabels?.[labelKeys.deploymentId];
  const reading = seal.read(replicaSets, metadata);
  const sealed = reading.kind === "valid" ? reading.ids : undefined;
  const ownership = judgeOwnership(reading, metadata, deploymentId !== undefined);
  const essence = wasTakenOver(ownership) ? essenceOf(template?.spec) : undefined;
  const projection: Writable<ReplicaSetProjection> = {
    namespace: metadata?.namespace ?? "",
    name: metadata?.name ?? "",
    uid: metadata?.uid ?? "",
    generation: metadata?.generation ?? 0,
    ownership,
    deploymentId,
    workspaceId: sealed?.workspaceId ?? labels?.[labelKeys.workspaceId],
    environmentId: sealed?.environmentId ?? labels?.[labelKeys.environmentId],
    port: portOf(template?.spec?.containers[0]),
    // The default of Kubernetes.
    replicas: spec?.replicas ?? 1,
    manifestHash: manifestHashOf({ metadata }),
    image: keptText(template?.spec?.containers[0]?.image),
    templateHash: templateHashOf(template ?? {}),
    isSandboxed: template?.spec?.runtimeClassName === runtimeClassName,
    createdAt: metadata?.creationTimestamp,
    deleting: metadata?.deletionTimestamp !== undefined,
  };
  if (essence !== undefined) projection.essence = essence;
  if (refusal !== undefined) projection.refusal = refusal;
  if (heldBy !== undefined) projection.heldBy = heldBy;
  if (metadata?.annotations?.[annotationKeys.held] !== undefined) projection.isHeld = true;
  return projection;
}

/** Or may still be, if desired state names it. */
export function wasTakenOver(ownership: Ownership): boolean {
  return ownership.kind === "unsealed" || (ownership.kind === "ours" && ownership.isAdopted);
}

type Templated = Pick<PodProjection, "templateHash" | "essence">;

/**
 * Whether a pod runs an older template than that of its ReplicaSet, or another image that somebody gave it since, or cannot
 * be proven to run its template.
 */
export function isOfOlderTemplate(
  pod: Templated & Pick<PodProjection, "laterImage" | "isRemarked">,
  replicaSet: Templated & Pick<ReplicaSetProjection, "image">,
): boolean {
  if (pod.isRemarked) return true;
  if (pod.templateHash === replicaSet.templateHash)
    return pod.laterImage !== undefined && pod.laterImage !== replicaSet.image;
  return pod.templateHash !== undefined || !isSameEssence(pod.essence, replicaSet.essence);
}

function refusalOf({ metadata, status }: ReplicaSet): string | undefined {
  const refused = status?.conditions?.find(
    ({ type, status }) => type === "ReplicaFailure" && status === "True",
  );
  return refused && obstacleText(refused.reason, withoutPodName(refused.message, metadata?.name));
}

export function projectPod(pod: Pod, share: Share = (text) => text): PodProjection {
  const { metadata, spec } = pod;
  const container = spec?.containers[0];
  const limits = { ...container?.resources?.limits, ...limitsInForce(pod, container) };
  const obstacle = share(podObstacle(pod));
  const owner = metadata?.ownerReferences?.find(({ controller }) => controller);
  const weakness = podWeakness(pod);
  const orphan = orphanOf(pod);
  const templateHash = share(templateHashOf(pod));
  const essence = templateHash === undefined ? essenceOf(spec) : undefined;
  const image = templateHash === undefined ? undefined : share(keptText(laterImage(pod)));
  const projection: Writable<PodProjection> = {
    ownerUid: share(keptText(owner?.uid)),
    ownerName: share(keptText(owner?.name)),
    templateHash,
    standing: standingOf(pod, failureOf(pod)),
    endpoint: endpointOf(pod, portOf(container)),
    cpuMillicores: Number(parseMillicores(limits?.["cpu"])),
    memoryMib: Number(parseMebibytes(limits?.["memory"])),
    restarts: restartsOf(pod),
    createdAtSeconds: createdAtSeconds(metadata?.creationTimestamp),
    zone: share(metadata?.labels?.[zoneLabel]),
  };
  if (orphan !== undefined) projection.orphanOf = orphan;
  if (essence !== undefined) projection.essence = essence;
  if (hasLaterMark(pod)) projection.isRemarked = true;
  if (image !== undefined) projection.laterImage = image;
  if (obstacle !== undefined) projection.obstacle = obstacle;
  if (weakness !== undefined) projection.weakness = weakness;
  if (hasNoSandbox(pod)) projection.isUnsandboxed = true;
  return projection;
}

/** The limits that the node enforces. Those of the spec can be changed, and the node may not have room for them. */
function limitsInForce({ status }: Pod, container: Container | undefined) {
  return status?.containerStatuses?.find(({ name }) => name === container?.name)?.resources?.limits;
}

function restartsOf({ status }: Pod): number {
  return (status?.containerStatuses ?? []).reduce((sum, { restartCount }) => sum + restartCount, 0);
}

/** In seconds, as Kubernetes writes it: small numbers take no memory of their own. */
function createdAtSeconds(text: string | undefined): number {
  // biome-ignore lint/style/noRestrictedGlobals: it reads a timestamp that Kubernetes wrote.
  const ms = Date.parse(text ?? "");
  return Number.isNaN(ms) ? 0 : Math.trunc(ms / 1_000);
}

function standingOf({ metadata, status }: Pod, failure: PodFailure | undefined): PodStanding {
  if (metadata?.deletionTimestamp !== undefined) return "omitted";
  if (status?.phase === "Failed" || status?.phase === "Succeeded") return "omitted";
  if (failure !== undefined) return failure;
  if (!status?.podIP) return "omitted";
  const isRunning = status.phase === "Running" && conditionOf(status, "ContainersReady")?.status === "True";
  // Its containers run, but a readiness gate of the cluster is closed, or nobody knows whether they still run.
  const isDoubtful = conditionOf(status, "Ready")?.status === "False";
  return isRunning && !isDoubtful ? "running" : "pending";
}

/**
 * Kubernetes marks the pods of a node that does not answer as not ready, and leaves the rest of their status as the node
 * last reported it. It gives no reason; a kubelet always gives one.
 */
function isNodeLost(status: PodStatus | undefined): boolean {
  const ready = conditionOf(status, "Ready");
  return (
    ready?.status === "False" && !ready.reason && conditionOf(status, "ContainersReady")?.status === "True"
  );
}

function conditionOf(status: PodStatus | undefined, wanted: string): PodCondition | undefined {
  return status?.conditions?.find(({ type }) => type === wanted);
}

function failureOf({ status }: Pod): PodFailure | undefined {
  const statuses: ContainerStatus[] = [
    ...(status?.initContainerStatuses ?? []),
    ...(status?.containerStatuses ?? []),
  ];
  return statuses.map(({ state }) => state?.waiting?.reason).find(isFailure);
}

/**
 * The control plane requires unique addresses, so a failing pod that never got one has its name instead: two such pods
 * with an empty address would overwrite each other.
 */
function endpointOf({ metadata, status }: Pod, port: number): string {
  const host = status?.podIP ? status.podIP.replaceAll(/[.:]/g, "-") : metadata?.name;
  // join() creates a flat string; a template literal would keep its parts in memory, and the links between them.
  return [host, port].join(":");
}

/** The cluster's DNS name for the address of a pod. */
export function addressOf(pod: PodProjection, namespace: string): string {
  return pod.endpoint.replace(":", `.${namespace}.pod.cluster.local:`);
}

/** Where a running pod listens, recovered from its endpoint: IP addresses contain no "-". */
export function socketOf(pod: PodProjection): { readonly ip: string; readonly port: number } {
  const [host = "", port = ""] = pod.endpoint.split(":");
  const ip = host.replaceAll("-", /^\d+-\d+-\d+-\d+$/.test(host) ? "." : ":");
  return { ip, port: Number(port) };
}

/** The pod's own port rather than the template's: pods from an older template keep their port. */
function portOf(container: Container | undefined): number {
  return container?.ports?.[0]?.containerPort ?? defaultPort;
}

// Reasons for which every container waits while it starts.
const ordinaryWaits: ReadonlySet<string> = new Set(["ContainerCreating", "PodInitializing"]);

/**
 * Why a pod cannot run, in Kubernetes' words where it has some: the reason of its container or of the scheduler, or that
 * its node is lost. Undefined for a pod that runs, starts or has finished; a finished pod is replaced by another one.
 */
function podObstacle({ metadata, status }: Pod): string | undefined {
  if (metadata?.deletionTimestamp !== undefined) return undefined;
  if (status?.phase === "Failed" || status?.phase === "Succeeded") return undefined;
  const containers = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])];
  const stuck = containers.find(isStuck);
  if (stuck !== undefined) return containerObstacle(stuck);
  if (isNodeLost(status)) return obstacleText("NodeLost", "its node does not answer");
  const scheduled = conditionOf(status, "PodScheduled");
  return scheduled?.status === "False" ? obstacleText(scheduled.reason, scheduled.message) : undefined;
}

function isStuck({ state }: ContainerStatus): boolean {
  const reason = state?.waiting?.reason ?? "";
  return reason !== "" && !ordinaryWaits.has(reason);
}

function containerObstacle({ state, lastState }: ContainerStatus): string {
  const { reason, message } = state?.waiting ?? {};
  if (reason !== "CrashLoopBackOff") return obstacleText(reason, message);
  // Kubernetes' message contains the name of the pod, so no two would be equal. The program's termination message is
  // left out, because it may hold a customer's secret (K7).
  const { exitCode, reason: end } = lastState?.terminated ?? {};
  return obstacleText(reason, exitCode === undefined ? end : `${end ?? "ended"}, exit code ${exitCode}`);
}
