// The parts of a route's live objects that krane caches.
import type { Service } from "kubernetes-types/core/v1.js";
import { services } from "../../kube/resources.ts";
import type { KubeObject, ResourceKind } from "../../kube/types.ts";
import { labelKeys } from "../../model/labels.ts";
import { manifestHashOf } from "../../model/manifest-hash.ts";
import { finalizersOf } from "../../model/obstacle.ts";
import { judgeOwnership, type Ownership } from "../../model/ownership.ts";
import type { Seal } from "../../model/seal.ts";

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
  /** It has no address, so its port leads nowhere. Nobody can change that. */
  readonly isHeadless?: true;
}

export function projectService(service: Service, seal: Seal): ServiceProjection {
  const deploymentId = service.spec?.selector?.[labelKeys.deploymentId] ?? "";
  const isHeadless = service.spec?.clusterIP === "None";
  return {
    ...projectRouteObject(service, services, seal),
    deploymentId,
    ...(isHeadless && { isHeadless: true as const }),
  };
}

export function projectRouteObject(
  { metadata }: KubeObject,
  kind: ResourceKind,
  seal: Seal,
): RouteObjectProjection {
  const reading = seal.read(kind, metadata);
  const heldBy = finalizersOf(metadata);
  const isOther = reading.kind === "valid" && reading.ids.id === undefined;
  return {
    namespace: metadata?.namespace ?? "",
    name: metadata?.name ?? "",
    uid: metadata?.uid ?? "",
    ownership: isOther ? ofAnotherKind : judgeOwnership(reading, metadata),
    routeId: reading.kind === "valid" ? reading.ids.id : metadata?.labels?.[labelKeys.routeId],
    manifestHash: manifestHashOf({ metadata }),
    createdAt: metadata?.creationTimestamp,
    deleting: metadata?.deletionTimestamp !== undefined,
    ...(heldBy !== undefined && { heldBy }),
  };
}

const ofAnotherKind: Ownership = { kind: "foreign", reason: "its seal is that of another kind of object" };
