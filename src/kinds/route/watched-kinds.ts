// The kinds that the route controller watches, and how their objects relate to the keys of routes. The objects of a route
// are named after it: its Service and its HTTPRoute have its name, its policy a prefix, and its second Service a suffix.
import type { Service } from "kubernetes-types/core/v1.js";
import type { DefinitionDeps } from "../../engine/controller-definition.ts";
import { type ChangedKeys, isContentChange } from "../../engine/controller-definition.ts";
import { WatchedKind } from "../../engine/watched-kind.ts";
import type { ReportRouteStatusRequestSchema } from "../../gen/ctrl/v1/route_pb.ts";
import type { CacheChange } from "../../kube/object-cache.ts";
import { type CustomObject, ciliumNetworkPolicies, httpRoutes, services } from "../../kube/resources.ts";
import type { KubeObject, ResourceKind } from "../../kube/types.ts";
import { components, ownSelector } from "../../model/labels.ts";
import { judgeIdentity, type Ownership } from "../../model/ownership.ts";
import { type SealedIds, sealedIdsOf } from "../../model/seal.ts";
import { routeLabels, routeOfNextService, routeOfPolicy, routeOfSealedId } from "./desired.ts";
import {
  type HttpRouteProjection,
  projectHttpRoute,
  projectRouteObject,
  projectService,
  type RouteObjectProjection,
  type ServiceProjection,
} from "./projections.ts";
import type { RouteRef, RouteSpec } from "./spec.ts";

export type RouteDeps = DefinitionDeps<RouteSpec, typeof ReportRouteStatusRequestSchema>;

/** What the watches of a kind have in common. An agent whose chart is older than itself lacks the permission. */
function watching(kind: ResourceKind, { seal }: RouteDeps) {
  const selectedLabelsOf = (object: KubeObject) => {
    const reading = seal.read(kind, object.metadata);
    const id = reading.kind === "valid" ? reading.ids.id : undefined;
    return id === undefined ? {} : routeLabels(routeOfSealedId(id).routeId);
  };
  const selection = { labelSelector: ownSelector(components.route) };
  return { selection, owned: true, selectedLabelsOf, required: false } as const;
}

export function watchServices(deps: RouteDeps) {
  const project = (object: Service) => projectService(object, deps.seal);
  const options = { kind: services, project, ...watching(services, deps) };
  return new WatchedKind<Service, ServiceProjection>(options, deps);
}

export function watchPolicies(deps: RouteDeps) {
  const kind = ciliumNetworkPolicies;
  const project = (object: CustomObject) => projectRouteObject(object, kind, deps.seal);
  const options = { kind, project, ...watching(kind, deps) };
  return new WatchedKind<CustomObject, RouteObjectProjection>(options, deps);
}

export function watchHttpRoutes(deps: RouteDeps) {
  const project = (object: CustomObject) => projectHttpRoute(object, deps.seal);
  const options = { kind: httpRoutes, project, ...watching(httpRoutes, deps) };
  return new WatchedKind<CustomObject, HttpRouteProjection>(options, deps);
}

export function refOf(key: string): RouteRef {
  const [namespace = "", name = ""] = key.split("/");
  return { namespace, name };
}

export function idsOf(spec: RouteSpec): SealedIds {
  return sealedIdsOf(spec, spec.routeId);
}

/** Its label can be edited, which is drift, but the id in its seal cannot. */
export function judgeRoute({ ownership, routeId }: RouteObjectProjection, wanted: string): Ownership {
  return routeId === undefined
    ? ownership
    : judgeIdentity(ownership, { what: "route id", live: routeId, wanted });
}

/** The key of the route that the policy belongs to. */
export function keyOfPolicy({ namespace, name }: RouteObjectProjection): string | undefined {
  const route = routeOfPolicy(name);
  return route === undefined ? undefined : `${namespace}/${route}`;
}

export function routeKeys(change: CacheChange<RouteObjectProjection>): ChangedKeys {
  return { reconcile: isContentChange(change) ? [change.key] : [], report: [change.key] };
}

/** By its name, it may be the Service of one route or the second one of another. */
export function serviceKeys(change: CacheChange<ServiceProjection>): ChangedKeys {
  const other = routeOfNextService(change.key);
  const keys = other === undefined ? [change.key] : [change.key, other];
  return { reconcile: isContentChange(change) ? keys : [], report: keys };
}

export function policyKeys(change: CacheChange<RouteObjectProjection>): ChangedKeys {
  const key = keyOfPolicy((change.kind === "deleted" ? change.before : change.after).value);
  return { reconcile: key !== undefined && isContentChange(change) ? [key] : [], report: [] };
}
