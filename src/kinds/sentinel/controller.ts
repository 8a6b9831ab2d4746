// Defines the sentinel controller. A sentinel is an apps/v1 Deployment with four companions.
//
// The Deployment is applied first and deleted last: after a crash krane finds it and completes or deletes the rest.
// Companions that have lost their Deployment are looked up upstream by their id.
import type { ControllerRecipe, DefinitionDeps } from "../../engine/controller-definition.ts";
import {
  type ControllerDefinition,
  defineKind,
  type ManagedObject,
} from "../../engine/controller-definition.ts";
import type { DesiredEntry } from "../../engine/desired-store.ts";
import type { OwnedTarget, Plan, PlanStep } from "../../engine/plan.ts";
import type { Observation } from "../../engine/reporter.ts";
import type { ReportSentinelStatusRequestSchema } from "../../gen/ctrl/v1/sentinel_pb.ts";
import { sentinelNamespace } from "../../model/labels.ts";
import { heldText } from "../../model/obstacle.ts";
import { isClaimable } from "../../model/ownership.ts";
import type { KindSettings } from "../kind-settings.ts";
import { pullSecretSteps } from "../pull-secret-step.ts";
import { SentinelObjects } from "./objects.ts";
import { observeAbsentSentinel, observeSentinel } from "./observed.ts";
import type { SentinelDeploymentProjection, SentinelObjectProjection } from "./projections.ts";
import type { ObservedSentinel } from "./seen.ts";
import type { SentinelRef, SentinelSpec } from "./spec.ts";
import {
  companionKeys,
  deploymentKeys,
  type SentinelKinds,
  sentinelKeyOf,
  watchSentinelKinds,
} from "./watched-kinds.ts";

export const sentinelRecipe: ControllerRecipe<
  SentinelSpec,
  typeof ReportSentinelStatusRequestSchema,
  ObservedSentinel,
  KindSettings
> = {
  define: (settings, deps) => new SentinelDefinition(settings, deps),
};

class SentinelDefinition implements ControllerDefinition<SentinelSpec, ObservedSentinel> {
  readonly watchedKinds;
  private readonly settings: KindSettings;
  private readonly deps: DefinitionDeps<SentinelSpec, typeof ReportSentinelStatusRequestSchema>;
  private readonly watched: SentinelKinds;
  private readonly objects: SentinelObjects;

  constructor(
    settings: KindSettings,
    deps: DefinitionDeps<SentinelSpec, typeof ReportSentinelStatusRequestSchema>,
  ) {
    this.settings = settings;
    this.deps = deps;
    this.watched = watchSentinelKinds(deps);
    this.objects = new SentinelObjects(this.watched, settings);
    const { deployments, services, budgets, policies } = this.watched;
    this.watchedKinds = [
      defineKind(deployments, deploymentKeys),
      defineKind(services, companionKeys),
      defineKind(budgets, companionKeys),
      // Completes the sentinels that waited for the policies of the cluster.
      defineKind(policies, companionKeys, () => [...deps.store.entries()].map(({ key }) => key)),
    ];
  }

  *managed(): IterableIterator<ManagedObject> {
    const { deployments, services, budgets, policies } = this.watched;
    for (const { key, value } of deployments.cache.all())
      if (isClaimable(value.ownership)) yield this.managedObject(key, value);
    const seen = new Set<string>();
    for (const { cache } of [services, budgets, policies])
      for (const { value } of cache.all()) {
        const key = sentinelKeyOf(value);
        if (!isClaimable(value.ownership) || seen.has(key) || deployments.cache.get(key)) continue;
        seen.add(key);
        yield this.managedObject(key, value);
      }
  }

  managedByKey(key: string): ManagedObject | undefined {
    const deployment = this.watched.deployments.get(key)?.value;
    const live = deployment ?? this.objects.liveCompanions(sentinelOf(key))[0]?.value;
    return live !== undefined && isClaimable(live.ownership) ? this.managedObject(key, live) : undefined;
  }

  companionKeys(): Iterable<string> {
    return [];
  }

  plan(key: string, entry: DesiredEntry<SentinelSpec> | undefined): Plan {
    if (entry?.want.kind === "delete")
      return { kind: "delete", targets: this.targets(key, entry), authority: "order" };
    return entry?.want.kind === "apply" ? this.planApply(key, entry.want.spec) : { kind: "nothing" };
  }

  targets(key: string, entry: DesiredEntry<SentinelSpec> | undefined): readonly OwnedTarget[] {
    return this.objects.targets(sentinelOf(key), entry?.id);
  }

  observe(key: string): Observation | undefined {
    const { deployments } = this.watched;
    const live = deployments.get(key)?.value;
    if (live !== undefined && !this.isOurs(key, live)) return undefined;
    if (this.isOnlyOrdered(key)) return undefined;
    const { report, store } = this.deps;
    const { update, fingerprint } =
      live === undefined
        ? observeAbsentSentinel(sentinelOf(key).name, store.get(key)?.id ?? "")
        : observeSentinel(live);
    const send = (signal: AbortSignal) => report(update, signal);
    return { change: live === undefined ? "delete" : "update", fingerprint, send };
  }

  readiness(key: string): { readonly ready: number; readonly total: number } {
    const counts = this.seen(key)?.counts;
    return { ready: counts?.ready ?? 0, total: counts?.wanted ?? 0 };
  }

  failing(): ReadonlyMap<string, string> {
    const failing = new Map<string, string>();
    for (const { key, value } of this.watched.deployments.cache.all()) {
      const text = this.isOurs(key, value) ? failingSentinel(value) : "";
      if (text !== "") failing.set(key, text);
    }
    return failing;
  }

  /** What runs of a sentinel that krane owns; undefined if nothing does. */
  seen(key: string): ObservedSentinel | undefined {
    const live = this.watched.deployments.get(key)?.value;
    return live !== undefined && this.isOurs(key, live) ? observeSentinel(live) : undefined;
  }

  /** Whether the control plane has never sent this sentinel: it would reject every report on it. */
  private isOnlyOrdered(key: string): boolean {
    const entry = this.deps.store.get(key);
    return entry?.origin === "scheduler" && entry.version === 0n;
  }

  /** Without a seal it is krane's only where desired state names it. */
  private isOurs(key: string, { ownership, sentinelId }: SentinelObjectProjection): boolean {
    return ownership.kind === "unsealed" ? this.deps.store.names(key, sentinelId) : ownership.kind === "ours";
  }

  private managedObject(key: string, live: SentinelObjectProjection): ManagedObject {
    return { key, id: live.sentinelId, isProven: this.isOurs(key, live) };
  }

  private planApply(key: string, spec: SentinelSpec): Plan {
    const steps: readonly PlanStep[] = [
      { kind: "namespace", name: spec.namespace },
      ...pullSecretSteps(spec, this.settings.registry, this.deps.seal),
      { kind: "object", object: this.objects.deployment(spec) },
      { kind: "each", steps: () => this.companionSteps(key, spec) },
    ];
    return { kind: "apply", steps };
  }

  private companionSteps(key: string, spec: SentinelSpec): readonly PlanStep[] {
    const { deployments, policies } = this.watched;
    const uid = deployments.get(key)?.uid;
    // The watch sees the deletion and reconciles the key again at once.
    if (uid === undefined) return [{ kind: "unmet", reason: `Deployment ${key} was deleted meanwhile` }];
    return [...this.objects.companions(spec, uid)].map(([kind, object]) =>
      kind === "gossip-policy" && !policies.synced
        ? { kind: "unmet", reason: this.holdReason() }
        : { kind: "object", object },
    );
  }

  private holdReason(): string {
    const { policies } = this.watched;
    if (policies.isMissing)
      return "the cluster has no CiliumNetworkPolicy; everything but the gossip policy is in place";
    const { lastError } = policies.status();
    return `the network policies of the cluster are not known yet${lastError === "" ? "" : `: ${lastError}`}`;
  }
}

function sentinelOf(key: string): SentinelRef {
  const [, name = ""] = key.split("/");
  return { namespace: sentinelNamespace, name };
}

type JudgedDeployment = Pick<
  SentinelDeploymentProjection,
  "replicas" | "replicasAvailable" | "obstacle" | "heldBy"
>;

/**
 * Describes to users why pods of a sentinel cannot run; empty if they can. krane does not watch the pods of sentinels:
 * their apps/v1 Deployment reports when pods are rejected, and after some minutes that they do not become ready.
 */
export function failingSentinel(deployment: JudgedDeployment): string {
  const { replicas, replicasAvailable, obstacle, heldBy } = deployment;
  if (heldBy !== undefined) return heldText("Deployment", heldBy);
  if (obstacle === undefined) return "";
  const missing = Math.max(0, replicas - replicasAvailable);
  // A rollout can be stuck while all of the previous pods still serve.
  return missing === 0
    ? obstacle
    : `${missing} of ${replicas} ${replicas === 1 ? "pod" : "pods"}: ${obstacle}`;
}
