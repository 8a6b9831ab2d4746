// Defines the route controller. A route is a Service and, if others than sentinels may reach it, a policy.
//
// The policy is applied before the Service moves to a backend, so that no connection reaches pods that refuse it. It is
// removed after the Service. A Service that exists and is not krane's is a conflict, and stays as it is.
import type { Service } from "kubernetes-types/core/v1.js";
import { ContentHashes } from "../../engine/applied-content.ts";
import type { ControllerRecipe, DefinitionDeps } from "../../engine/controller-definition.ts";
import {
  type ChangedKeys,
  type ControllerDefinition,
  defineKind,
  isContentChange,
  type ManagedObject,
} from "../../engine/controller-definition.ts";
import type { DesiredEntry } from "../../engine/desired-store.ts";
import { type OwnedTarget, ownedObject, ownedTarget, type Plan, type PlanStep } from "../../engine/plan.ts";
import type { Observation } from "../../engine/reporter.ts";
import { WatchedKind } from "../../engine/watched-kind.ts";
import type { ReportRouteStatusRequestSchema } from "../../gen/ctrl/v1/route_pb.ts";
import type { CacheChange, CacheEntry } from "../../kube/object-cache.ts";
import { type CustomObject, ciliumNetworkPolicies, services } from "../../kube/resources.ts";
import type { KubeObject, ResourceKind } from "../../kube/types.ts";
import { components, ownSelector } from "../../model/labels.ts";
import { heldText } from "../../model/obstacle.ts";
import { isClaimable, judgeIdentity, type Ownership } from "../../model/ownership.ts";
import { type SealedIds, sealedIdsOf } from "../../model/seal.ts";
import type { KindSettings } from "../kind-settings.ts";
import {
  desiredPolicy,
  desiredService,
  isExposed,
  routeLabels,
  routeOfPolicy,
  routePolicyName,
} from "./desired.ts";
import {
  projectRouteObject,
  projectService,
  type RouteObjectProjection,
  type ServiceProjection,
} from "./projections.ts";
import type { ObservedRoute } from "./seen.ts";
import type { RouteRef, RouteSpec } from "./spec.ts";

type Deps = DefinitionDeps<RouteSpec, typeof ReportRouteStatusRequestSchema>;

export const routeRecipe: ControllerRecipe<
  RouteSpec,
  typeof ReportRouteStatusRequestSchema,
  ObservedRoute,
  KindSettings
> = {
  define: (settings, deps) => new RouteDefinition(settings, deps),
};

const selection = { labelSelector: ownSelector(components.route) };

class RouteDefinition implements ControllerDefinition<RouteSpec, ObservedRoute> {
  readonly watchedKinds;
  private readonly settings: Pick<KindSettings, "networkPolicy">;
  private readonly deps: Deps;
  private readonly services: WatchedKind<Service, ServiceProjection>;
  private readonly policies: WatchedKind<CustomObject, RouteObjectProjection>;
  private readonly serviceHashes = new ContentHashes<RouteSpec>();
  private readonly policyHashes = new ContentHashes<RouteSpec>();

  constructor(settings: KindSettings, deps: Deps) {
    this.settings = settings;
    this.deps = deps;
    const { seal, store } = deps;
    const selectedLabelsOf = (kind: ResourceKind) => (object: KubeObject) => {
      const reading = seal.read(kind, object.metadata);
      const id = reading.kind === "valid" ? reading.ids.id : undefined;
      return id === undefined ? {} : routeLabels(id);
    };
    this.services = new WatchedKind<Service, ServiceProjection>(
      {
        kind: services,
        selection,
        project: (object) => projectService(object, seal),
        owned: true,
        selectedLabelsOf: selectedLabelsOf(services),
        // An agent whose chart is older than itself lacks the permission. Everything but routes goes on.
        required: false,
      },
      deps,
    );
    this.policies = new WatchedKind<CustomObject, RouteObjectProjection>(
      {
        kind: ciliumNetworkPolicies,
        selection,
        project: (object) => projectRouteObject(object, ciliumNetworkPolicies, seal),
        owned: true,
        selectedLabelsOf: selectedLabelsOf(ciliumNetworkPolicies),
        required: false,
      },
      deps,
    );
    const wanted = () => [...store.entries()].map(({ key }) => key);
    this.watchedKinds = [
      // Both complete the routes that waited for them.
      defineKind(this.services, serviceKeys, wanted),
      defineKind(this.policies, policyKeys, wanted),
    ];
  }

  *managed(): IterableIterator<ManagedObject> {
    for (const { key, value } of this.services.cache.all())
      if (isClaimable(value.ownership)) yield this.managedObject(key, value);
    for (const { value } of this.policies.cache.all()) {
      const key = keyOfPolicy(value);
      if (key !== undefined && isClaimable(value.ownership) && !this.isManagedService(key))
        yield this.managedObject(key, value);
    }
  }

  managedByKey(key: string): ManagedObject | undefined {
    const live = this.isManagedService(key) ? this.services.get(key) : this.policyOf(key);
    return live && isClaimable(live.value.ownership) ? this.managedObject(key, live.value) : undefined;
  }

  companionKeys(): Iterable<string> {
    return [];
  }

  plan(key: string, entry: DesiredEntry<RouteSpec> | undefined): Plan {
    if (entry === undefined || entry.want.kind === "invalid") return { kind: "nothing" };
    if (!this.services.synced) return unknown("Services", this.services);
    if (entry.want.kind === "delete")
      return { kind: "delete", targets: this.targets(key, entry), authority: "order" };
    const { spec } = entry.want;
    // One that admitted somebody before must not any more.
    if (isExposed(spec) || this.policyOf(key) !== undefined) return this.planExposed(key, spec);
    return { kind: "apply", steps: [...namespaceSteps(spec), ...this.serviceSteps(key, spec)] };
  }

  targets(key: string, entry: DesiredEntry<RouteSpec> | undefined): readonly OwnedTarget[] {
    const ref = refOf(key);
    const judge = (live: ServiceProjection) =>
      entry?.id === undefined ? live.ownership : judgeRoute(live, entry.id);
    return [ownedTarget(this.services, { key, ref, judge, isLookedUp: true }), this.policyTarget(ref)];
  }

  observe(key: string): Observation | undefined {
    const observed = this.seen(key) ?? this.observeAbsent(key);
    if (observed === undefined) return undefined;
    const { deploymentId, exists } = observed;
    const change = exists ? "update" : "delete";
    const send = (signal: AbortSignal) => this.deps.report(observed, signal);
    const fingerprint = `${change} ${observed.routeId} ${deploymentId}`;
    return { change, fingerprint, send, ...(!exists && { saysGone: true }) };
  }

  /** The route as it is in the cluster; undefined unless it is krane's. */
  seen(key: string): ObservedRoute | undefined {
    const live = this.services.get(key)?.value;
    if (live === undefined || !this.isOurs(key, live)) return undefined;
    const { namespace: k8sNamespace, name: k8sName, routeId = "", deploymentId } = live;
    return { k8sNamespace, k8sName, routeId, deploymentId, exists: true };
  }

  readiness(key: string): { readonly ready: number; readonly total: number } {
    const entry = this.deps.store.get(key);
    const isReady = this.seen(key) !== undefined && !this.services.get(key)?.value.isHeadless;
    return { ready: isReady ? 1 : 0, total: entry?.want.kind === "apply" ? 1 : 0 };
  }

  /** Nothing runs for a route, so only its deletion can get stuck. */
  failing(): ReadonlyMap<string, string> {
    const failing = new Map<string, string>();
    for (const { value } of this.policies.cache.all()) {
      const key = keyOfPolicy(value);
      if (key !== undefined && value.heldBy !== undefined)
        failing.set(key, heldText("CiliumNetworkPolicy", value.heldBy));
    }
    for (const { key, value } of this.services.cache.all())
      if (value.heldBy !== undefined) failing.set(key, heldText("Service", value.heldBy));
    return failing;
  }

  private observeAbsent(key: string): ObservedRoute | undefined {
    const entry = this.deps.store.get(key);
    // A Service whose seal somebody replaced may still lead somewhere, and what is not a route is nobody's business.
    if (entry === undefined || this.services.get(key) !== undefined) return undefined;
    // A Delete names no id. The control plane then knows the route by its name.
    const { id: routeId = "" } = entry;
    const { namespace: k8sNamespace, name: k8sName } = refOf(key);
    return { k8sNamespace, k8sName, routeId, deploymentId: "", exists: false };
  }

  private planExposed(key: string, spec: RouteSpec): Plan {
    const { policies } = this;
    const steps = namespaceSteps(spec);
    if (policies.synced)
      return { kind: "apply", steps: [...steps, this.policyStep(spec), ...this.serviceSteps(key, spec)] };
    if (policies.isMissing && this.settings.networkPolicy === "best-effort")
      return { kind: "apply", steps: [...steps, ...this.serviceSteps(key, spec)] };
    if (!policies.isMissing) return unknown("network policies", policies);
    return {
      kind: "unmet",
      reason: "the cluster has no CiliumNetworkPolicy (isolation.network_policy is required)",
    };
  }

  private serviceSteps(key: string, spec: RouteSpec): readonly PlanStep[] {
    const manifest = () => desiredService(spec);
    const object = ownedObject(this.services, {
      key,
      ref: refOf(key),
      contentHash: () => this.serviceHashes.of(spec, manifest),
      ids: () => idsOf(spec),
      manifest,
      judge: (live) => judgeRoute(live, spec.routeId),
    });
    const step = { kind: "object", object } as const;
    if (!this.services.get(key)?.value.isHeadless) return [step];
    const remedy = "which Kubernetes does not let krane change; delete it, and krane creates it again";
    return [step, { kind: "flawed", reason: `Service ${key} is headless, ${remedy}` }];
  }

  private policyStep(spec: RouteSpec): PlanStep {
    const ref = { namespace: spec.namespace, name: routePolicyName(spec) };
    const manifest = (): CustomObject => desiredPolicy(spec);
    const object = ownedObject(this.policies, {
      key: `${ref.namespace}/${ref.name}`,
      ref,
      contentHash: () => this.policyHashes.of(spec, manifest),
      ids: () => idsOf(spec),
      manifest,
      judge: ({ ownership }) => ownership,
    });
    return { kind: "object", object };
  }

  private policyTarget(route: RouteRef): OwnedTarget {
    const ref = { namespace: route.namespace, name: routePolicyName(route) };
    const isLookedUp = !this.policies.isMissing;
    const judge = ({ ownership }: RouteObjectProjection) => ownership;
    return ownedTarget(this.policies, { key: `${ref.namespace}/${ref.name}`, ref, judge, isLookedUp });
  }

  private policyOf(key: string): CacheEntry<RouteObjectProjection> | undefined {
    const { namespace, name } = refOf(key);
    return this.policies.get(`${namespace}/${routePolicyName({ name })}`);
  }

  private isManagedService(key: string): boolean {
    const live = this.services.get(key)?.value;
    return live !== undefined && isClaimable(live.ownership);
  }

  /** Without a seal it is krane's only where desired state names it. */
  private isOurs(key: string, { ownership, routeId }: RouteObjectProjection): boolean {
    return ownership.kind === "unsealed" ? this.deps.store.names(key, routeId) : ownership.kind === "ours";
  }

  private managedObject(key: string, live: RouteObjectProjection): ManagedObject {
    return { key, id: live.routeId, isProven: this.isOurs(key, live) };
  }
}

// The first list response reconciles the waiting keys. This is the retry interval in case it never arrives.
const lookAgainMs = 10_000;

function unknown(what: string, watched: { status(): { readonly lastError: string } }): Plan {
  const { lastError } = watched.status();
  // As after every start, the first list response is still pending; that is not a problem yet.
  if (lastError === "") return { kind: "later", afterMs: lookAgainMs };
  return { kind: "unmet", reason: `the ${what} of the cluster are not known yet: ${lastError}` };
}

function namespaceSteps({ namespace }: RouteSpec): readonly PlanStep[] {
  return [{ kind: "namespace", name: namespace }];
}

function idsOf(spec: RouteSpec): SealedIds {
  return sealedIdsOf(spec, spec.routeId);
}

/** Its label can be edited, which is drift, but the id in its seal cannot. */
function judgeRoute({ ownership, routeId }: RouteObjectProjection, wanted: string): Ownership {
  return routeId === undefined
    ? ownership
    : judgeIdentity(ownership, { what: "route id", live: routeId, wanted });
}

function refOf(key: string): RouteRef {
  const [namespace = "", name = ""] = key.split("/");
  return { namespace, name };
}

function keyOfPolicy({ namespace, name }: RouteObjectProjection): string | undefined {
  const route = routeOfPolicy(name);
  return route === undefined ? undefined : `${namespace}/${route}`;
}

function serviceKeys(change: CacheChange<ServiceProjection>): ChangedKeys {
  return { reconcile: isContentChange(change) ? [change.key] : [], report: [change.key] };
}

function policyKeys(change: CacheChange<RouteObjectProjection>): ChangedKeys {
  const key = keyOfPolicy((change.kind === "deleted" ? change.before : change.after).value);
  return { reconcile: key !== undefined && isContentChange(change) ? [key] : [], report: [] };
}
