// Defines the deployment controller. A deployment is a ReplicaSet. The deployments of an environment share one ingress
// policy, which has its own key (K1). No workload is applied before that policy exists and admits its port (K8).
import type { ControllerRecipe, DefinitionDeps } from "../../engine/controller-definition.ts";
import {
  type ControllerDefinition,
  type DefinitionOptions,
  defineKind,
  type ManagedObject,
  type WatchedObject,
} from "../../engine/controller-definition.ts";
import type { DesiredEntry } from "../../engine/desired-store.ts";
import { type OwnedTarget, ownedObject, ownedTarget, type Plan, type PlanStep } from "../../engine/plan.ts";
import { PodReplacement } from "../../engine/pod-replacement.ts";
import type { Observation } from "../../engine/reporter.ts";
import type { ReportDeploymentStatusRequestSchema } from "../../gen/ctrl/v1/deployment_pb.ts";
import type { CacheChange, CacheEntry } from "../../kube/object-cache.ts";
import { isClaimable, judgeIdentity, type Ownership } from "../../model/ownership.ts";
import { sealedIdsOf } from "../../model/seal.ts";
import type { KindSettings } from "../kind-settings.ts";
import { pullSecretSteps } from "../pull-secret-step.ts";
import { failingDeployment } from "./failing.ts";
import { IngressPolicies } from "./ingress-policy-plan.ts";
import { type IsolatedPod, weaknessOf } from "./isolation.ts";
import { observeDeployment } from "./observed.ts";
import { hasOrphans, orphanTargets } from "./orphaned-pods.ts";
import { OwnedPods, type OwnedPodsDeps, ownerOf } from "./owned-pods.ts";
import { PodOwners } from "./pod-owners.ts";
import { type ReplicaSetProjection, socketOf, wasTakenOver } from "./projections.ts";
import { type ChosenReplicaSet, ReplicaSetChoice } from "./replica-set-choice.ts";
import type { SeenDeployment } from "./seen.ts";
import type { DeploymentSpec } from "./spec.ts";
import {
  environmentName,
  environmentOfKey,
  type Pods,
  podKeys,
  policyKey,
  policyKeys,
  type ReplicaSets,
  replicaSetKeys,
  some,
  watchPods,
  watchPolicies,
  watchReplicaSets,
} from "./watched-kinds.ts";

export const deploymentRecipe: ControllerRecipe<
  DeploymentSpec,
  typeof ReportDeploymentStatusRequestSchema,
  SeenDeployment,
  KindSettings
> = {
  groupOf: ({ want }) => (want.kind === "apply" ? environmentName(want.spec) : undefined),
  define: (settings, deps) => new DeploymentDefinition(settings, deps),
};

class DeploymentDefinition implements ControllerDefinition<DeploymentSpec, SeenDeployment> {
  readonly watchedKinds;
  private readonly settings: KindSettings;
  private readonly deps: DefinitionDeps<DeploymentSpec, typeof ReportDeploymentStatusRequestSchema>;
  private readonly replicaSets: ReplicaSets;
  private readonly pods: Pods;
  private readonly ingress: IngressPolicies;
  private readonly owners: PodOwners;
  private readonly replacement: PodReplacement;
  private readonly podDeps: OwnedPodsDeps;
  private readonly limitedSpecs = new WeakMap<DeploymentSpec, DeploymentSpec>();
  private readonly choice: ReplicaSetChoice;

  constructor(
    settings: KindSettings & DefinitionOptions,
    deps: DefinitionDeps<DeploymentSpec, typeof ReportDeploymentStatusRequestSchema>,
  ) {
    this.settings = settings;
    this.deps = deps;
    this.replicaSets = watchReplicaSets(deps);
    this.pods = watchPods(deps);
    this.owners = new PodOwners(this.pods, this.replicaSets);
    const policies = watchPolicies(deps);
    const { store, clock } = deps;
    this.replacement = new PodReplacement(settings.deletion, clock);
    this.podDeps = {
      replicaSets: this.replicaSets,
      pods: this.pods,
      replacement: this.replacement,
      readiness: (key) => this.readiness(key),
    };
    const { secrets, registry, runtimeClass } = settings;
    this.choice = new ReplicaSetChoice({
      secrets,
      runtimeClass,
      ...(registry !== undefined && { registryHost: registry.host }),
    });
    this.ingress = new IngressPolicies({
      clock,
      store,
      replicaSets: this.replicaSets,
      policies,
      mode: settings.networkPolicy,
      isInformed: () => deps.isInformed(),
      scraperNamespace: settings.scraperNamespace,
    });
    this.watchedKinds = [
      defineKind(this.replicaSets, (change) => this.replicaSetKeys(change)),
      defineKind(this.pods, (change) =>
        podKeys(this.replicaSets, change, (key) => store.get(key) !== undefined),
      ),
      defineKind(policies, policyKeys),
    ];
  }

  *managed(): IterableIterator<ManagedObject> {
    for (const entry of this.replicaSets.cache.all())
      if (isClaimable(entry.value.ownership)) yield this.managedObject(entry);
  }

  managedByKey(key: string): ManagedObject | undefined {
    const entry = this.replicaSets.get(key);
    return entry && isClaimable(entry.value.ownership) ? this.managedObject(entry) : undefined;
  }

  companionKeys(): Iterable<string> {
    return this.ingress.keys();
  }

  prerequisites({ want }: DesiredEntry<DeploymentSpec>): Iterable<string> {
    if (want.kind !== "apply") return [];
    const steps = this.ingress.awaitSteps(want.spec);
    return steps.flatMap((step) => (step.isReady ? [] : [step.key]));
  }

  dependents({ want }: DesiredEntry<DeploymentSpec>): Iterable<string> {
    return want.kind === "apply" ? [policyKey(want.spec)] : [];
  }

  plan(key: string, entry: DesiredEntry<DeploymentSpec> | undefined): Plan {
    const environment = environmentOfKey(key);
    if (environment !== undefined) return this.ingress.plan(environment);
    if (entry?.want.kind === "delete") {
      this.replacement.forget(ownerOf(key));
      const targets = [...this.targets(key, entry), ...orphanTargets(this.pods.cache, key, this.deps.api)];
      return { kind: "delete", targets, authority: "order" };
    }
    if (entry?.want.kind !== "apply") return { kind: "nothing" };
    return this.planApply(key, entry.want.spec, entry.version);
  }

  targets(key: string, entry: DesiredEntry<DeploymentSpec> | undefined): readonly OwnedTarget[] {
    if (environmentOfKey(key) !== undefined) return [];
    const [namespace = "", name = ""] = key.split("/");
    const id = entry?.id;
    const judge = (live: ReplicaSetProjection) =>
      id === undefined ? live.ownership : judgeDeployment(live, id);
    return [ownedTarget(this.replicaSets, { key, ref: { namespace, name }, judge, isLookedUp: true })];
  }

  observe(key: string): Observation | "unclear" | undefined {
    if (environmentOfKey(key) !== undefined || this.isOnlyOrdered(key)) return undefined;
    const holder = this.nameHolder(key);
    if (holder !== "this") return holder === "unclear" ? "unclear" : undefined;
    const observed = this.seen(key);
    const { report } = this.deps;
    if (observed === undefined) {
      if (this.replicaSets.get(key) !== undefined) return undefined;
      // Its pods still run.
      if (hasOrphans(this.pods.cache, key)) return "unclear";
      const [, k8sName = ""] = key.split("/");
      const change = { case: "delete", value: { k8sName } } as const;
      const send = (signal: AbortSignal) => report({ change }, signal);
      return { change: "delete", fingerprint: "deleted", send };
    }
    const { update, fingerprint } = observed;
    const change = { case: "update", value: update } as const;
    const send = (signal: AbortSignal) => report({ change }, signal);
    return { change: "update", fingerprint, send };
  }

  readiness(key: string): { readonly ready: number; readonly total: number } {
    const counts = this.seen(key)?.counts;
    return { ready: counts?.ready ?? 0, total: counts?.wanted ?? 0 };
  }

  /** Called after every change, twice a second at most, so it reads only the objects that something is wrong with. */
  failing(): ReadonlyMap<string, string> {
    const failing = new Map<string, string>();
    const { replicaSets, pods } = this;
    const note = (entry: CacheEntry<ReplicaSetProjection>) => {
      if (failing.has(entry.key) || !this.isOurs(entry)) return;
      const owned = pods.cache.byIndex("owner", entry.uid).map(({ value }) => value);
      failing.set(entry.key, failingDeployment(entry.value, owned));
    };
    replicaSets.cache.byIndex("troubled", some).forEach(note);
    for (const { value } of pods.cache.byIndex("stuck", some))
      if (value.ownerUid !== undefined) replicaSets.cache.byIndex("uid", value.ownerUid).forEach(note);
    return failing;
  }

  originalPods(): number {
    let count = 0;
    for (const { pod, owners } of this.unmarkedPods())
      if (pod.standing !== "omitted" && owners.some((owner) => this.isOurs(owner))) count += 1;
    return count;
  }

  mayHaveOriginalPods(): boolean {
    return this.unmarkedPods().next().done !== true;
  }

  /** The pods without a mark of krane's, of ReplicaSets that it took over or may still take over. */
  private *unmarkedPods() {
    for (const { value: pod } of this.pods.cache.byIndex("unmarked", some)) {
      const owners = this.replicaSets.cache
        .byIndex("uid", pod.ownerUid ?? "")
        .filter(({ value }) => wasTakenOver(value.ownership));
      if (owners.length > 0) yield { pod, owners };
    }
  }

  /** What runs of a deployment that krane owns; undefined if nothing does. */
  seen(key: string): SeenDeployment | undefined {
    const entry = this.replicaSets.get(key);
    if (entry === undefined || !this.isOurs(entry)) return undefined;
    const pods = this.pods.cache.byIndex("owner", entry.uid).map(({ key, value }) => {
      const [, name = ""] = key.split("/");
      return { ...value, name };
    });
    const want = this.deps.store.get(key)?.want;
    const readinessId = want?.kind === "apply" ? want.spec.kept?.readinessId : undefined;
    return {
      ...observeDeployment(entry.value, pods),
      ...(readinessId !== undefined && { readinessId }),
      sockets: pods.filter(({ standing }) => standing === "running").map(socketOf),
    };
  }

  liveObject(key: string): WatchedObject | undefined {
    const entry = this.replicaSets.get(key);
    if (entry?.value.ownership.kind !== "ours" || entry.value.deleting || !this.replicaSets.isFollowed)
      return undefined;
    const { uid, resourceVersion, hash } = entry;
    return { uid, resourceVersion, hash, generation: entry.value.generation };
  }

  findStrays(signal: AbortSignal): Promise<void> {
    return this.owners.findMissing(signal);
  }

  /**
   * Whether the control plane means this deployment by its name. A report has no namespace, and in another one there may be
   * a leftover with the same name. Two of them are told apart as soon as desired state names one.
   */
  private nameHolder(key: string): "this" | "another" | "unclear" {
    const { store } = this.deps;
    const entry = store.get(key);
    if (entry !== undefined && entry.want.kind !== "delete") return "this";
    const [, name = ""] = key.split("/");
    const others = store.ofName(name).filter((other) => other.key !== key);
    if (others.some(({ want }) => entry === undefined || want.kind !== "delete")) return "another";
    const live = this.replicaSets.cache.byIndex("name", name);
    const isAlone = !live.some((one) => one.key !== key && this.isOurs(one));
    return entry !== undefined || isAlone ? "this" : "unclear";
  }

  /** Whether the control plane has never sent this deployment: it would reject every report on it. */
  private isOnlyOrdered(key: string): boolean {
    const entry = this.deps.store.get(key);
    return entry?.origin === "scheduler" && entry.version === 0n;
  }

  private planApply(key: string, spec: DeploymentSpec, version: bigint): Plan {
    const templateHash = () => this.replicaSets.get(key)?.value.templateHash;
    let chosen: { readonly of: DeploymentSpec; readonly replicaSet: ChosenReplicaSet } | undefined;
    const choose = () => {
      const current = this.limited(key, spec, version);
      if (chosen?.of !== current) chosen = { of: current, replicaSet: this.choice.of(current, templateHash) };
      return chosen.replicaSet;
    };
    const manifest = () => choose().manifest();
    const { runtimeClass } = this.settings;
    const object = ownedObject(this.replicaSets, {
      key,
      ref: { namespace: spec.namespace, name: spec.name },
      contentHash: () => choose().contentHash(),
      // The server treats the selector as a single value, and it holds only the id of this deployment.
      refusesStrangers: true,
      ids: () => sealedIdsOf(spec, spec.deploymentId),
      manifest,
      judge: (live) => judgeDeployment(live, spec.deploymentId),
      weaknessOf: (replicaSet) => weaknessOf((replicaSet.spec?.template ?? {}) as IsolatedPod, runtimeClass),
      replicasHeld: () => this.isolatedPods(key),
    });
    const steps: readonly PlanStep[] = [
      { kind: "namespace", name: spec.namespace },
      ...pullSecretSteps(spec, this.settings.registry, this.deps.seal),
      ...this.ingress.awaitSteps(spec, { isNew: object.live() === undefined }),
      { kind: "object", object },
      {
        kind: "pods",
        object,
        pods: new OwnedPods(key, { replicas: spec.replicas, version }, this.podDeps),
      },
    ];
    return { kind: "apply", steps };
  }

  /** The spec with fewer replicas, while new pods would be less isolated than their template. */
  private limited(key: string, spec: DeploymentSpec, version: bigint): DeploymentSpec {
    const live = this.replicaSets.get(key);
    if (live?.value.ownership.kind === "ours") {
      const { isHeld = false, replicas } = live.value;
      const pods = () => this.pods.cache.byIndex("owner", live.uid).map(({ uid }) => uid);
      this.replacement.follow(ownerOf(key), { isHeld, replicas, pods, wanted: spec.replicas, version });
    }
    const limit = this.replacement.limitOf(ownerOf(key));
    if (limit === undefined || limit >= spec.replicas) return spec;
    const known = this.limitedSpecs.get(spec);
    if (known?.replicas === limit) return known;
    const limited = { ...spec, replicas: limit, isHeld: true as const };
    this.limitedSpecs.set(spec, limited);
    return limited;
  }

  /** How many of its pods run as isolated as they should. */
  private isolatedPods(key: string): number {
    const { uid = "" } = this.replicaSets.get(key) ?? {};
    return this.pods.cache.byIndex("owner", uid).filter(({ value }) => value.standing === "running").length;
  }

  /** Without a seal it is krane's only where desired state names it. */
  private isOurs({ key, value }: CacheEntry<ReplicaSetProjection>): boolean {
    if (value.ownership.kind !== "unsealed") return value.ownership.kind === "ours";
    return this.deps.store.names(key, value.deploymentId);
  }

  private managedObject(entry: CacheEntry<ReplicaSetProjection>): ManagedObject {
    const { key, value } = entry;
    return {
      key,
      id: value.deploymentId,
      isProven: this.isOurs(entry),
    };
  }

  private replicaSetKeys(change: CacheChange<ReplicaSetProjection>) {
    if (change.kind === "deleted") this.deleted(change.key, change.before.value);
    return replicaSetKeys(this.replicaSets, change, {
      admits: (value) => this.ingress.admits(value),
      isWanted: (key, { port, environmentId }) => {
        const want = this.deps.store.get(key)?.want;
        return want?.kind === "apply" && want.spec.port === port && want.spec.environmentId === environmentId;
      },
    });
  }

  private deleted(key: string, { namespace, environmentId }: ReplicaSetProjection): void {
    const wanted = this.deps.store.get(key)?.want.kind;
    if (wanted === "apply") this.ingress.lost({ namespace });
    if (wanted === "delete" && environmentId !== undefined)
      this.ingress.released({ namespace, environmentId });
  }
}

function judgeDeployment(live: ReplicaSetProjection, wanted: string): Ownership {
  return judgeIdentity(live.ownership, { what: "deployment id", live: live.deploymentId, wanted });
}
