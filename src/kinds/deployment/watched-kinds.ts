// What the deployment controller watches: its ReplicaSets, their pods, and the ingress policies of the
// environments. Which keys a change concerns is decided here; what to do about it is not.
import type { ReplicaSet } from "kubernetes-types/apps/v1.js";
import type { Pod } from "kubernetes-types/core/v1.js";
import { type ChangedKeys, isContentChange } from "../../engine/controller-definition.ts";
import type { LiveProjection } from "../../engine/plan.ts";
import { WatchedKind, type WatchedKindDeps } from "../../engine/watched-kind.ts";
import type { CacheChange } from "../../kube/object-cache.ts";
import type { CustomObject } from "../../kube/resources.ts";
import { ciliumNetworkPolicies, pods, replicaSets } from "../../kube/resources.ts";
import { components, labelKeys, ownSelector } from "../../model/labels.ts";
import { judgeOwnership } from "../../model/ownership.ts";
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
  /** What it lets in. */
  readonly ports: readonly number[];
}

/** Two deployments share a policy when they share a namespace and an environment. */
export interface EnvironmentRef {
  readonly namespace: string;
  readonly environmentId: string;
}

const selection = { labelSelector: ownSelector(components.deployment) };
const policyPrefix = "policy:";

/** What the deployments of one environment in one namespace have in common. */
export function environmentName({ namespace, environmentId }: EnvironmentRef): string {
  return `${namespace}/${environmentId}`;
}

// No name of a deployment has a colon in it, so the two kinds of key cannot meet.
export function policyKey(environment: EnvironmentRef): string {
  return policyPrefix + environmentName(environment);
}

/** The environment that a key is about; undefined for the key of a deployment. */
export function environmentOfKey(key: string): EnvironmentRef | undefined {
  if (!key.startsWith(policyPrefix)) return undefined;
  const [namespace = "", environmentId = ""] = key.slice(policyPrefix.length).split("/");
  return { namespace, environmentId };
}

export type ReplicaSets = WatchedKind<ReplicaSet, ReplicaSetProjection, "environment" | "uid">;
export type Pods = WatchedKind<Pod, PodProjection, "owner">;
export type Policies = WatchedKind<CustomObject, PolicyProjection>;

export function watchReplicaSets(deps: WatchedKindDeps): ReplicaSets {
  return new WatchedKind<ReplicaSet, ReplicaSetProjection, "environment" | "uid">(
    {
      kind: replicaSets,
      selection,
      project: projectReplicaSet,
      indexes: {
        environment: ({ namespace, environmentId }) =>
          environmentId === undefined ? undefined : environmentName({ namespace, environmentId }),
        uid: ({ uid }) => uid,
      },
      owned: true,
      required: true,
    },
    deps,
  );
}

export function watchPods(deps: WatchedKindDeps): Pods {
  return new WatchedKind<Pod, PodProjection, "owner">(
    {
      kind: pods,
      selection,
      project: projectPod,
      indexes: { owner: ({ ownerUid }) => ownerUid },
      owned: false,
      required: true,
    },
    deps,
  );
}

/** Not required: without the CRD the controller still starts, and reports what it waits for. */
export function watchPolicies(deps: WatchedKindDeps): Policies {
  return new WatchedKind<CustomObject, PolicyProjection>(
    { kind: ciliumNetworkPolicies, selection, project: projectPolicy, owned: true, required: false },
    deps,
  );
}

/** `admits`: whether the policy of an environment lets a port in, as far as is known. */
export function replicaSetKeys(
  sets: ReplicaSets,
  change: CacheChange<ReplicaSetProjection>,
  admits: (value: ReplicaSetProjection) => boolean,
): ChangedKeys {
  const { key } = change;
  if (!isContentChange(change)) return { reconcile: [], report: [key] };
  const isExpected = sets.isOwnWrite(change) && !concernsPolicy(change, admits);
  if (isExpected) return { reconcile: [], report: [key] };
  return { reconcile: [key, ...policyKeysOf(statesOf(change))], report: [key] };
}

/**
 * A changed port leaves the policy wider than needed once nothing listens on the previous one. And the policy may have
 * been narrowed at the moment when this port was found open.
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

export function podKeys(sets: ReplicaSets, change: CacheChange<PodProjection>): ChangedKeys {
  const { value } = change.kind === "deleted" ? change.before : change.after;
  const owners = value.ownerUid === undefined ? [] : sets.cache.byIndex("uid", value.ownerUid);
  return { reconcile: [], report: owners.map(({ key }) => key) };
}

/** Also of krane's own writes: a policy is made of what many keys want, and they go on while it is written. */
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

function projectPolicy({ metadata, spec }: CustomObject): PolicyProjection {
  const labels = metadata?.labels ?? {};
  return {
    namespace: metadata?.namespace ?? "",
    name: metadata?.name ?? "",
    workspaceId: labels[labelKeys.workspaceId],
    environmentId: labels[labelKeys.environmentId],
    ports: admittedPorts(spec),
    ownership: judgeOwnership(metadata),
    deleting: metadata?.deletionTimestamp !== undefined,
    createdAt: metadata?.creationTimestamp,
  };
}

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
