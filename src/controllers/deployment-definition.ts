// The deployment controller as a table. A deployment is a ReplicaSet; the deployments of an environment
// share one ingress policy, which is a key of its own (K1), and no workload is applied before that policy
// is there and lets its port in (K8).
import type { ReplicaSet } from "kubernetes-types/apps/v1.js";
import type { Secret } from "kubernetes-types/core/v1.js";
import type { Clock } from "../concurrency/clock.ts";
import type { ControlPlane } from "../control-plane/connection.ts";
import type { DeploymentState } from "../gen/ctrl/v1/deployment_pb.ts";
import { secrets } from "../kube/kinds.ts";
import type { CacheChange, CacheEntry } from "../kube/object-cache.ts";
import type { DeploymentSettings } from "../model/deployment/desired.ts";
import { observeDeployment } from "../model/deployment/observed.ts";
import type { ReplicaSetProjection } from "../model/deployment/projections.ts";
import { desiredReplicaSet } from "../model/deployment/replica-set.ts";
import type { DeploymentRules, DeploymentSpec } from "../model/deployment/spec.ts";
import { desiredNamespace } from "../model/namespace.ts";
import { judgeIdentity, judgeOwnership, type Ownership } from "../model/ownership.ts";
import {
  desiredPullSecret,
  isImageOfRegistry,
  isPullSecretCurrent,
  pullSecretName,
  type RegistryCredentials,
} from "../model/pull-secret.ts";
import { manifestContentHash } from "./applied-content.ts";
import type { ControllerDefinition, ManagedObject } from "./controller-definition.ts";
import {
  defineKind,
  environmentOfKey,
  type Pods,
  podKeys,
  policyKeys,
  type ReplicaSets,
  replicaSetKeys,
  watchPods,
  watchPolicies,
  watchReplicaSets,
} from "./deployment-kinds.ts";
import { readDeploymentState } from "./deployment-messages.ts";
import type { DesiredEntry, DesiredStore } from "./desired-store.ts";
import { IngressPolicies } from "./ingress-policy-plan.ts";
import { type OwnedTarget, ownedObject, ownedTarget, type Plan, type Step } from "./plan.ts";
import type { Observation } from "./reporter.ts";
import type { WatchedKindDeps } from "./watched-kind.ts";

export interface DeploymentDefinitionOptions {
  readonly rules: DeploymentRules;
  readonly settings: DeploymentSettings;
  readonly networkPolicy: "required" | "best-effort";
}

export interface DeploymentDefinitionDeps extends WatchedKindDeps {
  readonly controlPlane: ControlPlane;
  readonly store: DesiredStore<DeploymentSpec>;
  readonly clock: Clock;
}

export function createDeploymentDefinition(
  options: DeploymentDefinitionOptions,
  deps: DeploymentDefinitionDeps,
): ControllerDefinition<DeploymentState, DeploymentSpec> {
  return new DeploymentDefinition(options, deps);
}

class DeploymentDefinition implements ControllerDefinition<DeploymentState, DeploymentSpec> {
  readonly name = "deployments";
  readonly kinds;
  private readonly options: DeploymentDefinitionOptions;
  private readonly deps: DeploymentDefinitionDeps;
  private readonly replicaSets: ReplicaSets;
  private readonly pods: Pods;
  private readonly ingress: IngressPolicies;
  /** A manifest is large and its hash is short; the manifest is built again when it is sent. */
  private readonly contentHashes = new WeakMap<DeploymentSpec, string>();

  constructor(options: DeploymentDefinitionOptions, deps: DeploymentDefinitionDeps) {
    this.options = options;
    this.deps = deps;
    this.replicaSets = watchReplicaSets(deps);
    this.pods = watchPods(deps);
    const policies = watchPolicies(deps);
    const { store, clock } = deps;
    this.ingress = new IngressPolicies({
      clock,
      store,
      replicaSets: this.replicaSets,
      policies,
      mode: options.networkPolicy,
    });
    this.kinds = [
      defineKind(this.replicaSets, (change) => this.replicaSetKeys(change)),
      defineKind(this.pods, (change) => podKeys(this.replicaSets, change)),
      defineKind(policies, policyKeys),
    ];
  }

  watchDesired(versionLastSeen: bigint, signal: AbortSignal) {
    return this.deps.controlPlane.watchDeployments(versionLastSeen, signal);
  }

  getDesired(id: string, signal: AbortSignal) {
    return this.deps.controlPlane.getDesiredDeployment(id, signal);
  }

  readState(state: DeploymentState) {
    return readDeploymentState(state, this.options.rules);
  }

  *managed(): IterableIterator<ManagedObject> {
    for (const entry of this.replicaSets.cache.all()) if (isOurs(entry)) yield managedObject(entry);
  }

  managedByKey(key: string): ManagedObject | undefined {
    const entry = this.replicaSets.get(key);
    return entry && isOurs(entry) ? managedObject(entry) : undefined;
  }

  companionKeys(): Iterable<string> {
    return this.ingress.keys();
  }

  plan(key: string, entry: DesiredEntry<DeploymentSpec> | undefined): Plan {
    const environment = environmentOfKey(key);
    if (environment !== undefined) return this.ingress.plan(environment);
    if (entry?.want.kind === "delete")
      return { kind: "delete", targets: this.targets(key, entry), authority: "order" };
    return entry?.want.kind === "apply" ? this.planApply(key, entry.want.spec) : { kind: "nothing" };
  }

  targets(key: string, entry: DesiredEntry<DeploymentSpec> | undefined): readonly OwnedTarget[] {
    if (environmentOfKey(key) !== undefined) return [];
    const [namespace = "", name = ""] = key.split("/");
    const id = entry?.id;
    const judge = (live: ReplicaSetProjection) =>
      id === undefined ? live.ownership : judgeDeployment(live, id);
    return [ownedTarget(this.replicaSets, { key, ref: { namespace, name }, judge })];
  }

  observe(key: string): Observation | undefined {
    if (environmentOfKey(key) !== undefined) return undefined;
    const observed = this.observed(key);
    const { controlPlane } = this.deps;
    if (observed === undefined) {
      if (this.replicaSets.get(key) !== undefined) return undefined;
      const [, k8sName = ""] = key.split("/");
      const change = { case: "delete", value: { k8sName } } as const;
      const send = (signal: AbortSignal) => controlPlane.reportDeploymentStatus({ change }, signal);
      return { change: "delete", fingerprint: "deleted", send };
    }
    const { update, fingerprint } = observed;
    const change = { case: "update", value: update } as const;
    const send = (signal: AbortSignal) => controlPlane.reportDeploymentStatus({ change }, signal);
    return { change: "update", fingerprint, send };
  }

  readiness(key: string): { readonly ready: number; readonly total: number } {
    const counts = this.observed(key)?.counts;
    return { ready: counts?.ready ?? 0, total: counts?.wanted ?? 0 };
  }

  private observed(key: string) {
    const entry = this.replicaSets.get(key);
    if (entry === undefined || !isOurs(entry)) return undefined;
    const pods = this.pods.cache.byIndex("owner", entry.uid).map(({ key, value }) => {
      const [, name = ""] = key.split("/");
      return { ...value, name };
    });
    return observeDeployment(entry.value, pods);
  }

  private planApply(key: string, spec: DeploymentSpec): Plan {
    const { registry } = this.options.settings;
    const pullsWithSecret = registry !== undefined && isImageOfRegistry(spec.image.registry, registry.host);
    const object = ownedObject(this.replicaSets, {
      key,
      ref: { namespace: spec.namespace, name: spec.name },
      contentHash: this.contentHash(spec),
      manifest: () => this.replicaSetOf(spec),
      judge: (live) => judgeDeployment(live, spec.deploymentId),
    });
    const steps: readonly Step[] = [
      { kind: "namespace", manifest: desiredNamespace(spec.namespace) },
      ...(pullsWithSecret ? [pullSecretStep(spec.namespace, registry)] : []),
      ...this.ingress.awaitSteps(spec),
      { kind: "object", object },
    ];
    return { kind: "apply", steps };
  }

  private replicaSetOf(spec: DeploymentSpec): ReplicaSet {
    const { secrets: audience, registry } = this.options.settings;
    return desiredReplicaSet(spec, {
      secrets: audience,
      ...(registry !== undefined && { registryHost: registry.host }),
    });
  }

  private contentHash(spec: DeploymentSpec): string {
    const known = this.contentHashes.get(spec);
    if (known !== undefined) return known;
    const hash = manifestContentHash(this.replicaSetOf(spec));
    this.contentHashes.set(spec, hash);
    return hash;
  }

  private replicaSetKeys(change: CacheChange<ReplicaSetProjection>) {
    if (change.kind === "deleted" && this.deps.store.get(change.key)?.want.kind === "delete") {
      const { namespace, environmentId } = change.before.value;
      if (environmentId !== undefined) this.ingress.released({ namespace, environmentId });
    }
    return replicaSetKeys(change);
  }
}

function isOurs({ value }: CacheEntry<ReplicaSetProjection>): boolean {
  return value.ownership.kind === "ours";
}

function managedObject({ key, value }: CacheEntry<ReplicaSetProjection>): ManagedObject {
  return { key, id: value.deploymentId };
}

function judgeDeployment(live: ReplicaSetProjection, wanted: string): Ownership {
  return judgeIdentity(live.ownership, { what: "deployment id", live: live.deploymentId, wanted });
}

function pullSecretStep(namespace: string, registry: RegistryCredentials): Step {
  return {
    kind: "checked",
    object: {
      kind: secrets,
      ref: { name: pullSecretName, namespace },
      manifest: () => desiredPullSecret(namespace, registry),
      isCurrent: (live) => isPullSecretCurrent(live as Secret, desiredPullSecret(namespace, registry)),
      judge: (live) => judgeOwnership(live.metadata),
    },
  };
}
