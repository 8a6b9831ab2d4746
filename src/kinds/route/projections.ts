// The parts of a route's live objects that krane caches.
import type { Service } from "kubernetes-types/core/v1.js";
import { type CustomObject, httpRoutes, services } from "../../kube/resources.ts";
import type { KubeObject, ResourceKind } from "../../kube/types.ts";
import { quote } from "../../model/field-problem.ts";
import { annotationKeys, labelKeys } from "../../model/labels.ts";
import { finalizersOf } from "../../model/obstacle.ts";
import { judgeOwnership, type Ownership } from "../../model/ownership.ts";
import type { Seal } from "../../model/seal.ts";
import { routeOfSealedId } from "./desired.ts";

export interface RouteObjectProjection {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly ownership: Ownership;
  /** From the seal; without one from the label, which anybody can edit. */
  readonly routeId: string | undefined;
  readonly manifestHash: string | undefined;
  /** RFC 3339, as Kubernetes writes it. */
  readonly createdAt: string | undefined;
  readonly deleting: boolean;
  /** The finalizers that its deletion waits for. */
  readonly heldBy?: string;
}

export interface ServiceProjection extends RouteObjectProjection {
  /** The deployment whose pods it selects; empty for none. */
  readonly deploymentId: string;
  /** Whether its seal says that it is the second one of its route. */
  readonly isNext: boolean;
  /** It has no address, so its port leads nowhere. Nobody can change that. */
  readonly isHeadless?: true;
}

export function projectService(service: Service, seal: Seal): ServiceProjection {
  const deploymentId = service.spec?.selector?.[labelKeys.deploymentId] ?? "";
  const reading = seal.read(services, service.metadata);
  const isNext = reading.kind === "valid" && routeOfSealedId(reading.ids.id ?? "").isNext;
  const isHeadless = service.spec?.clusterIP === "None";
  return {
    ...projectRouteObject(service, services, seal),
    ...{ deploymentId, isNext },
    ...(isHeadless && { isHeadless: true as const }),
  };
}

export interface HttpRouteProjection extends RouteObjectProjection {
  readonly hostnames: readonly string[];
  /** The weights of its Services, by name. */
  readonly weights: Readonly<Record<string, number>>;
  /** What the Gateways say of it. */
  readonly parents: readonly GatewayVerdict[];
}

export interface GatewayVerdict {
  readonly namespace: string;
  readonly name: string;
  /** Why it does not send requests; empty if it does. */
  readonly problem: string;
}

export function projectHttpRoute(route: CustomObject, seal: Seal): HttpRouteProjection {
  const spec = (route.spec ?? {}) as HttpRouteFields;
  const { parents = [] } = (route.status ?? {}) as HttpRouteStatus;
  const refs = (spec.rules ?? []).flatMap(({ backendRefs = [] }) => backendRefs);
  return {
    ...projectRouteObject(route, httpRoutes, seal),
    hostnames: spec.hostnames ?? [],
    weights: Object.fromEntries(refs.map(({ name = "", weight = 1 }) => [name, weight])),
    parents: parents.map((parent) => ({
      namespace: parent.parentRef?.namespace ?? route.metadata?.namespace ?? "",
      name: parent.parentRef?.name ?? "",
      problem: problemOf(parent, route.metadata?.generation ?? 0),
    })),
  };
}

interface HttpRouteFields {
  readonly hostnames?: readonly string[];
  readonly rules?: readonly { readonly backendRefs?: readonly { name?: string; weight?: number }[] }[];
}

interface HttpRouteStatus {
  readonly parents?: readonly RouteParent[];
}

interface RouteParent {
  readonly parentRef?: { readonly namespace?: string; readonly name?: string };
  readonly conditions?: readonly {
    readonly type?: string;
    readonly status?: string;
    readonly reason?: string;
    readonly message?: string;
    readonly observedGeneration?: number;
  }[];
}

function problemOf({ conditions = [] }: RouteParent, generation: number): string {
  for (const type of ["Accepted", "ResolvedRefs"]) {
    const found = conditions.find((each) => each.type === type);
    if (found === undefined || (found.observedGeneration ?? generation) < generation)
      return "the Gateway has not looked at it yet";
    if (found.status !== "True")
      return `the Gateway does not serve it: ${quote(found.reason ?? type)}${found.message ? `, ${quote(found.message)}` : ""}`;
  }
  return "";
}

export function projectRouteObject(
  { metadata }: KubeObject,
  kind: ResourceKind,
  seal: Seal,
): RouteObjectProjection {
  const reading = seal.read(kind, metadata);
  const heldBy = finalizersOf(metadata);
  const isOther = reading.kind === "valid" && reading.ids.id === undefined;
  const sealedId =
    reading.kind === "valid" && reading.ids.id ? routeOfSealedId(reading.ids.id).routeId : undefined;
  return {
    namespace: metadata?.namespace ?? "",
    name: metadata?.name ?? "",
    uid: metadata?.uid ?? "",
    ownership: isOther ? ofAnotherKind : judgeOwnership(reading, metadata),
    routeId: reading.kind === "valid" ? sealedId : metadata?.labels?.[labelKeys.routeId],
    manifestHash: metadata?.annotations?.[annotationKeys.manifestHash],
    createdAt: metadata?.creationTimestamp,
    deleting: metadata?.deletionTimestamp !== undefined,
    ...(heldBy !== undefined && { heldBy }),
  };
}

const ofAnotherKind: Ownership = { kind: "foreign", reason: "its seal is that of another kind of object" };
