// Watches the ReplicaSets of deployments, their pods, and the ingress policies of environments, and maps each change to
// the keys to reconcile and report.
import type { ReplicaSet } from "kubernetes-types/apps/v1.js";
import type { Pod } from "kubernetes-types/core/v1.js";
import { type ChangedKeys, isContentChange } from "../../engine/controller-definition.ts";
import type { LiveProjection } from "../../engine/plan.ts";
import { WatchedKind, type WatchedKindDeps } from "../../engine/watched-kind.ts";
import type { CacheChange } from "../../kube/object-cache.ts";
import type { CustomObject } from "../../kube/resources.ts";
import { ciliumNetworkPolicies, pods, replicaSets } from "../../kube/resources.ts";
import { components, labelKeys, ownLabels, ownSelector } from "../../model/labels.ts";
import { manifestHashOf } from "../../model/manifest-hash.ts";
import { judgeOwnership, type Ownership } from "../../model/ownership.ts";
import type { Seal } from "../../model/seal.ts";
import {
  type PodProjection,
  projectPod,
  projectReplicaSet,
  type ReplicaSetProjection,
} from "./projections.ts";

export interface PolicyProjection extends LiveProjection {
  readonly namespace: string;
  readonly name: string;
  readonly workspaceId: string | undefined;
  readonly environmentId: string | undefined;
  /** The ports that it admits. */
  readonly ports: readonly number[];
}

/** Two deployments share a policy when they share a namespace and an environment. */
export interface EnvironmentRef {
  readonly namespace: string;
  readonly environmentId: string;
}

const selection = { labelSelector: ownSelector(components.deployment) };
const selectedLabelsOf = () => ownLabels(components.deployment);
const policyPrefix = "policy:";
/** The only name in an index of the few objects that something is special about. */
export const some = "some";

/** The same for all deployments of an environment in a namespace. */
export function environmentName({ namespace, environmentId }: EnvironmentRef): string {
  return `${namespace}/${environmentId}`;
}

/** The name of a deployment contains no colon, so this cannot be the key of a deployment. */
export function policyKey(environment: EnvironmentRef): string {
  return policyPrefix + environmentName(environment);
}

/** The environment of a policy key; undefined for the key of a deployment. */
export function environmentOfKey(key: string): EnvironmentRef | undefined {
  if (!key.startsWith(policyPrefix)) return undefined;
  const [namespace = "", environmentId = ""] = key.slice(policyPrefix.length).split("/");
  return { namespace, environmentId };
}

type ReplicaSetIndex = "environment" | "name" | "uid" | "troubled";
type PodIndex = "owner" | "orphan" | "stuck" | "unmarked";
export type ReplicaSets = WatchedKind<ReplicaSet, ReplicaSetProjection, ReplicaSetIndex>;
export type Pods = WatchedKind<Pod, PodProjection, PodIndex>;
export type Policies = WatchedKind<CustomObject, PolicyProjection>;

export function watchReplicaSets(deps: WatchedKindDeps): ReplicaSets {
  return new WatchedKind<ReplicaSet, ReplicaSetProjection, ReplicaSetIndex>(
    {
      kind: replicaSets,
      selection,
      project: (object) => projectReplicaSet(object, deps.seal),
      indexes: {
        environment: ({ namespace, environmentId }) =>
          environmentId === undefined ? undefined : environmentName({ namespace, environmentId }),
        name: ({ name }) => name,
        uid: ({ uid }) => uid,
        troubled: ({ refusal, heldBy }) => (refusal === undefined && heldBy === undefined ? undefined : some),
      },
      owned: true,
      selectedLabelsOf,
      required: true,
    },
    deps,
  );
}

export function watchPods(deps: WatchedKindDeps): Pods {
  return new WatchedKind<Pod, PodProjection, PodIndex>(
    {
      kind: pods,
      // The label that their ReplicaSet selects them by: no pod that it counts can be hidden from krane.
      selection: { labelSelector: labelKeys.deploymentId },
      project: projectPod,
      indexes: {
        owner: ({ ownerUid }) => ownerUid,
        orphan: ({ orphanOf }) => orphanOf,
        stuck: ({ obstacle }) => (obstacle === undefined ? undefined : some),
        unmarked: ({ templateHash }) => (templateHash === undefined ? some : undefined),
      },
      owned: false,
      required: true,
    },
    deps,
  );
}

/** Not required: without the CRD the controller still starts, and its status shows what it waits for. */
export function watchPolicies(deps: WatchedKindDeps): Policies {
  return new WatchedKind<CustomObject, PolicyProjection>(
    {
      kind: ciliumNetworkPolicies,
      selection,
      project: (object) => projectPolicy(object, deps.seal),
      owned: true,
      selectedLabelsOf,
      required: false,
    },
    deps,
  );
}

interface PolicyFacts {
  /** Whether the environment's policy is known to admit the port. */
  admits(value: ReplicaSetProjection): boolean;
  /** Whether desired state asks for this port in this environment: the policy then counts it, whatever runs. */
  isWanted(key: string, value: ReplicaSetProjection): boolean;
}

export function replicaSetKeys(
  sets: ReplicaSets,
  change: CacheChange<ReplicaSetProjection>,
  { admits, isWanted }: PolicyFacts,
): ChangedKeys {
  const { key } = change;
  if (!isContentChange(change)) return { reconcile: [], report: [key] };
  const isConcerned = concernsPolicy(change, admits);
  if (!isConcerned && sets.isOwnWrite(change)) return { reconcile: [], report: [key] };
  // The event of krane's own write often comes before its response, and looks like the write of somebody else.
  const isCounted = !isConcerned && change.kind !== "deleted" && isWanted(key, change.after.value);
  return { reconcile: [key, ...(isCounted ? [] : policyKeysOf(statesOf(change)))], report: [key] };
}

/**
 * After a port change the policy is too wide once nothing listens on the previous port. Also, the policy may have been
 * narrowed just after it was checked for this port.
 */
function concernsPolicy(
  change: CacheChange<ReplicaSetProjection>,
  admits: (value: ReplicaSetProjection) => boolean,
): boolean {
  if (change.kind === "deleted" || !admits(change.after.value)) return true;
  if (change.kind === "added") return false;
  const [before, after] = [change.before.value, change.after.value];
  return before.port !== after.port || before.environmentId !== after.environmentId;
}

/** `isKnown`: whether desired state has the key. */
export function podKeys(
  sets: ReplicaSets,
  change: CacheChange<PodProjection>,
  isKnown: (key: string) => boolean,
): ChangedKeys {
  const { value } = change.kind === "deleted" ? change.before : change.after;
  const owners = value.ownerUid === undefined ? [] : sets.cache.byIndex("uid", value.ownerUid);
  const keys = owners.map(({ key }) => key);
  // What it belonged to may be waiting for its end. Anybody can write such a key.
  const orphaned = statesOf(change)
    .flatMap(({ orphanOf }) => orphanOf ?? [])
    .filter(isKnown);
  // A weak pod is replaced, and after it the next one.
  const isSandboxed = owners.some((owner) => owner.value.isSandboxed);
  const isWeak = statesOf(change).some(
    ({ weakness, isUnsandboxed }) => weakness !== undefined || (isUnsandboxed && isSandboxed),
  );
  return { reconcile: [...(isWeak ? keys : []), ...orphaned], report: [...keys, ...orphaned] };
}

/** Includes krane's own writes: a policy derives from many keys, which may change while it is being written. */
export function policyKeys(change: CacheChange<PolicyProjection>): ChangedKeys {
  return { reconcile: isContentChange(change) ? policyKeysOf(statesOf(change)) : [], report: [] };
}

function statesOf<P>(change: CacheChange<P>): readonly P[] {
  const before = change.kind === "added" ? [] : [change.before.value];
  const after = change.kind === "deleted" ? [] : [change.after.value];
  return [...before, ...after];
}

function policyKeysOf(
  states: readonly { readonly namespace: string; readonly environmentId: string | undefined }[],
): readonly string[] {
  const keys = states.flatMap(({ namespace, environmentId }) =>
    environmentId === undefined ? [] : [policyKey({ namespace, environmentId })],
  );
  return [...new Set(keys)];
}

function projectPolicy({ metadata, spec }: CustomObject, seal: Seal): PolicyProjection {
  const labels = metadata?.labels ?? {};
  const reading = seal.read(ciliumNetworkPolicies, metadata);
  const sealed = reading.kind === "valid" ? reading.ids : undefined;
  return {
    namespace: metadata?.namespace ?? "",
    name: metadata?.name ?? "",
    workspaceId: sealed?.workspaceId ?? labels[labelKeys.workspaceId],
    environmentId: sealed?.environmentId ?? labels[labelKeys.environmentId],
    ports: admittedPorts(spec),
    ownership: sealed?.id === undefined ? judgeOwnership(reading, metadata) : withId,
    deleting: metadata?.deletionTimestamp !== undefined,
    createdAt: metadata?.creationTimestamp,
    manifestHash: manifestHashOf({ metadata }),
  };
}

/** A policy of another kind. */
const withId: Ownership = { kind: "foreign", reason: "its seal is that of another kind of policy" };

interface PolicySpec {
  readonly ingress?: readonly {
    readonly toPorts?: readonly { readonly ports?: readonly { readonly port?: string }[] }[];
  }[];
}

function admittedPorts(spec: unknown): readonly number[] {
  const { ingress } = (spec ?? {}) as PolicySpec;
  const rules = Array.isArray(ingress) ? ingress.flatMap(({ toPorts }) => toPorts ?? []) : [];
  return rules.flatMap(({ ports: some }) => some ?? []).map(({ port }) => Number(port));
}
