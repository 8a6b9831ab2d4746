// Defines the route controller. A route is a Service; a policy, if others than sentinels may reach it; and an HTTPRoute, if
// the Gateway does, with a second Service while requests move from one release to the next.
//
// - The policy is applied before the Service moves to a backend, so that no connection reaches pods that refuse it. It is
//   removed after the Service.
// - The HTTPRoute names a Service only after that leads somewhere, and a Service goes only after the HTTPRoute no longer
//   names it.
// - An object that exists and is not krane's is a conflict, and stays as it is.
import { ContentHashes } from "../../engine/applied-content.ts";
import {
  type ControllerDefinition,
  type ControllerRecipe,
  type DefinedKind,
  defineKind,
  type ManagedObject,
} from "../../engine/controller-definition.ts";
import type { DesiredEntry } from "../../engine/desired-store.ts";
import { type OwnedTarget, ownedObject, ownedTarget, type Plan, type PlanStep } from "../../engine/plan.ts";
import type { Observation } from "../../engine/reporter.ts";
import type { ReportRouteStatusRequestSchema } from "../../gen/ctrl/v1/route_pb.ts";
import type { CacheEntry } from "../../kube/object-cache.ts";
import type { CustomObject } from "../../kube/resources.ts";
import { heldText } from "../../model/obstacle.ts";
import { isClaimable } from "../../model/ownership.ts";
import { sealedIdsOf } from "../../model/seal.ts";
import type { KindSettings } from "../kind-settings.ts";
import {
  desiredNextService,
  desiredPolicy,
  desiredService,
  isExposed,
  nextServiceId,
  nextServiceName,
  routeOfNextService,
  routePolicyName,
} from "./desired.ts";
import { RouteGateway } from "./gateway.ts";
import type { RouteObjectProjection, ServiceProjection } from "./projections.ts";
import type { ObservedRoute } from "./seen.ts";
import type { RouteRef, RouteSpec } from "./spec.ts";
import {
  idsOf,
  judgeRoute,
  keyOfPolicy,
  policyKeys,
  type RouteDeps,
  refOf,
  serviceKeys,
  watchPolicies,
  watchServices,
} from "./watched-kinds.ts";

export const routeRecipe: ControllerRecipe<
  RouteSpec,
  typeof ReportRouteStatusRequestSchema,
  ObservedRoute,
  KindSettings
> = {
  define: (settings, deps) => new RouteDefinition(settings, deps),
};

class RouteDefinition implements ControllerDefinition<RouteSpec, ObservedRoute> {
  readonly watchedKinds: readonly DefinedKind[];
  private readonly settings: Pick<KindSettings, "networkPolicy">;
  private readonly deps: RouteDeps;
  private readonly services: ReturnType<typeof watchServices>;
  private readonly policies: ReturnType<typeof watchPolicies>;
  private readonly gateway: RouteGateway;
  private readonly serviceHashes = new ContentHashes<RouteSpec>();
  private readonly nextHashes = new ContentHashes<RouteSpec>();
  private readonly policyHashes = new ContentHashes<RouteSpec>();

  constructor(settings: KindSettings, deps: RouteDeps) {
    this.settings = settings;
    this.deps = deps;
    this.services = watchServices(deps);
    this.policies = watchPolicies(deps);
    this.gateway = new RouteGateway(settings.gateway, deps);
    const wanted = () => [...deps.store.entries()].map(({ key }) => key);
    this.watchedKinds = [
      // All complete the routes that waited for them.
      defineKind(this.services, serviceKeys, wanted),
      defineKind(this.policies, policyKeys, wanted),
      ...this.gateway.watchedKinds(wanted),
    ];
  }

  *managed(): IterableIterator<ManagedObject> {
    const found = new Set<string>();
    for (const { key, value } of this.ownObjects()) {
      if (!isClaimable(value.ownership) || found.has(key)) continue;
      found.add(key);
      yield this.managedObject(key, this.mainOf(key)?.value ?? value);
    }
  }

  managedByKey(key: string): ManagedObject | undefined {
    const live = this.mainOf(key);
    return live && this.managedObject(key, live.value);
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
    return this.planSteps(key, spec, []);
  }

  targets(key: string, entry: DesiredEntry<RouteSpec> | undefined): readonly OwnedTarget[] {
    const ref = refOf(key);
    const judge = (live: ServiceProjection) =>
      entry?.id === undefined ? live.ownership : judgeRoute(live, entry.id);
    return [
      ...this.gateway.targets(key),
      ...this.nextTargets(key),
      ownedTarget(this.services, { key, ref, judge, isLookedUp: true }),
      this.policyTarget(ref),
    ];
  }

  observe(key: string): Observation | undefined {
    const observed = this.seen(key) ?? this.observeAbsent(key);
    if (observed === undefined) return undefined;
    const { exists, hostnames, ...others } = observed;
    const change = exists ? "update" : "delete";
    const send = (signal: AbortSignal) =>
      this.deps.report({ ...others, exists, hostnames: [...hostnames] }, signal);
    const fingerprint = JSON.stringify([change, observed]);
    return { change, fingerprint, send, ...(!exists && { saysGone: true }) };
  }

  /** The route as it is in the cluster; undefined unless it is krane's. */
  seen(key: string): ObservedRoute | undefined {
    const live = this.services.get(key)?.value;
    if (live === undefined || live.isNext || !this.isOurs(key, live)) return undefined;
    const { namespace: k8sNamespace, name: k8sName, routeId = "", deploymentId } = live;
    return { k8sNamespace, k8sName, routeId, deploymentId, ...this.seenAtGateway(key), exists: true };
  }

  private seenAtGateway(key: string): Omit<ObservedRoute, "deploymentId" | "exists" | keyof RouteNames> {
    const want = this.deps.store.get(key)?.want;
    const isWanted = want?.kind === "apply" && want.spec.hostnames.length > 0;
    const live = this.gateway.get(key)?.value;
    const isOurs = live !== undefined && this.isOurs(key, live);
    const percent = isOurs ? live.weights[nextServiceName(refOf(key))] : undefined;
    return {
      hostnames: isOurs ? live.hostnames : [],
      nextDeploymentId: percent === undefined ? "" : (this.nextOf(key)?.value.deploymentId ?? ""),
      nextPercent: percent ?? 0,
      gatewayProblem: isWanted ? this.gateway.problemOf(key) : "",
    };
  }

  readiness(key: string): { readonly ready: number; readonly total: number } {
    const entry = this.deps.store.get(key);
    const isReady = this.seen(key) !== undefined && !this.services.get(key)?.value.isHeadless;
    return { ready: isReady ? 1 : 0, total: entry?.want.kind === "apply" ? 1 : 0 };
  }

  /** Nothing runs for a route, so only its deletion can get stuck, or the Gateway can be missing. */
  failing(): ReadonlyMap<string, string> {
    const failing = new Map<string, string>();
    const obstacle = this.gateway.obstacle();
    for (const { key, want } of obstacle === "" ? [] : this.deps.store.entries())
      if (want.kind === "apply" && want.spec.expose === "gateway") failing.set(key, obstacle);
    for (const { value } of this.policies.cache.all()) {
      const key = keyOfPolicy(value);
      if (key !== undefined && value.heldBy !== undefined)
        failing.set(key, heldText("CiliumNetworkPolicy", value.heldBy));
    }
    for (const { key, value } of this.gateway.all())
      if (value.heldBy !== undefined) failing.set(key, heldText("HTTPRoute", value.heldBy));
    for (const { key, value } of this.services.cache.all())
      if (value.heldBy !== undefined)
        failing.set(keyOfService(key, value), heldText("Service", value.heldBy));
    return failing;
  }

  private observeAbsent(key: string): ObservedRoute | undefined {
    const entry = this.deps.store.get(key);
    // A Service whose seal somebody replaced may still lead somewhere, and what is not a route is nobody's business.
    if (entry === undefined || this.services.get(key) !== undefined) return undefined;
    // Somebody else may get its hostnames only once nothing here answers for them.
    if (this.gateway.get(key) !== undefined) return undefined;
    // A Delete names no id. The control plane then knows the route by its name.
    const { id: routeId = "" } = entry;
    const { namespace: k8sNamespace, name: k8sName } = refOf(key);
    return { k8sNamespace, k8sName, routeId, deploymentId: "", ...nowhere, exists: false };
  }

  private planExposed(key: string, spec: RouteSpec): Plan {
    const { policies } = this;
    if (policies.synced) return this.planSteps(key, spec, [this.policyStep(spec)]);
    if (policies.isMissing && this.settings.networkPolicy === "best-effort")
      return this.planSteps(key, spec, []);
    if (!policies.isMissing) return unknown("network policies", policies);
    return {
      kind: "unmet",
      reason: "the cluster has no CiliumNetworkPolicy (isolation.network_policy is required)",
    };
  }

  private planSteps(key: string, spec: RouteSpec, before: readonly PlanStep[]): Plan {
    return {
      kind: "apply",
      steps: [
        { kind: "namespace", name: spec.namespace },
        ...before,
        this.serviceStep(key, spec),
        ...(spec.next === undefined ? [] : [this.nextStep(spec)]),
        ...this.gateway.steps(key, spec),
        ...this.flawSteps(key, spec),
      ],
      leftovers: [
        ...(spec.hostnames.length > 0 ? [] : this.gateway.targets(key)),
        ...(spec.next === undefined ? this.nextTargets(key) : []),
      ].filter((target) => target.live()?.ownership.kind === "ours"),
    };
  }

  private serviceStep(key: string, spec: RouteSpec): PlanStep {
    const manifest = () => desiredService(spec);
    const object = ownedObject(this.services, {
      key,
      ref: refOf(key),
      contentHash: () => this.serviceHashes.of(spec, manifest),
      ids: () => idsOf(spec),
      manifest,
      judge: (live) => judgeRoute(live, spec.routeId),
    });
    return { kind: "object", object };
  }

  private flawSteps(key: string, { next }: RouteSpec): readonly PlanStep[] {
    const own = [this.services.get(key), next === undefined ? undefined : this.nextOf(key)];
    const headless = own.find((live) => live?.value.isHeadless);
    if (headless === undefined) return [];
    const remedy = "which Kubernetes does not let krane change; delete it, and krane creates it again";
    return [{ kind: "flawed", reason: `Service ${headless.key} is headless, ${remedy}` }];
  }

  private nextStep(spec: RouteSpec): PlanStep {
    const ref = { namespace: spec.namespace, name: nextServiceName(spec) };
    const manifest = () => desiredNextService(spec);
    const object = ownedObject(this.services, {
      key: `${ref.namespace}/${ref.name}`,
      ref,
      contentHash: () => this.nextHashes.of(spec, manifest),
      ids: () => sealedIdsOf(spec, nextServiceId(spec.routeId)),
      manifest,
      judge: (live) => judgeRoute(live, spec.routeId),
    });
    return { kind: "object", object };
  }

  /** A Service of that name may also be the first one of another route. */
  private nextTargets(key: string): readonly OwnedTarget[] {
    const live = this.nextOf(key);
    if (live === undefined) return [];
    const { namespace, name } = live.value;
    const judge = ({ ownership }: ServiceProjection) => ownership;
    return [ownedTarget(this.services, { key: live.key, ref: { namespace, name }, judge })];
  }

  private policyStep(spec: RouteSpec): PlanStep {
    const ref = { namespace: spec.namespace, name: routePolicyName(spec) };
    const manifest = (): CustomObject => desiredPolicy(spec, this.gateway.settings);
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

  private nextOf(key: string): CacheEntry<ServiceProjection> | undefined {
    const { namespace, name } = refOf(key);
    const live = this.services.get(`${namespace}/${nextServiceName({ name })}`);
    return live?.value.isNext === true ? live : undefined;
  }

  /** Of the objects of a route that are krane's, the one that it is known by. */
  private mainOf(key: string): { readonly value: RouteObjectProjection } | undefined {
    const service = this.services.get(key);
    const own = [service?.value.isNext === true ? undefined : service, this.policyOf(key)];
    const others = [this.gateway.get(key), this.nextOf(key)];
    return [...own, ...others].find((live) => live !== undefined && isClaimable(live.value.ownership));
  }

  private *ownObjects(): IterableIterator<{ readonly key: string; readonly value: RouteObjectProjection }> {
    for (const { key, value } of this.services.cache.all()) yield { key: keyOfService(key, value), value };
    for (const { value } of this.policies.cache.all()) {
      const key = keyOfPolicy(value);
      if (key !== undefined) yield { key, value };
    }
    yield* this.gateway.all();
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

type RouteNames = Pick<ObservedRoute, "k8sNamespace" | "k8sName" | "routeId">;

const nowhere = { hostnames: [], nextDeploymentId: "", nextPercent: 0, gatewayProblem: "" };

/** The key of the route that the Service belongs to. */
function keyOfService(key: string, { isNext }: ServiceProjection): string {
  return isNext ? (routeOfNextService(key) ?? key) : key;
}
