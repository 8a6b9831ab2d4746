// Builds the Services of a route, and the policy that says who may reach its backends. Its HTTPRoute is in http-route.ts.
//
// - Requests that move from one release to the next in steps need a second Service. It has no other purpose: what does not
//   come through the Gateway knows the first one only, which moves at the end.
// - The Service selects the pods of one deployment, and with an empty id none: no pod has that.
// - The policy is a companion of the ingress policy of the environment, which admits sentinels only and stays as it is.
//   Cilium admits what any policy admits. It names each backend with its port, so it opens nothing else.
import type { Service } from "kubernetes-types/core/v1.js";
import type { KubeObject } from "../../kube/types.ts";
import type { EndpointSelector, PortRule } from "../../model/ingress-rules.ts";
import { orderAnnotations } from "../../model/kept-order.ts";
import { ciliumNamespaceLabel, components, labelKeys, ownLabels } from "../../model/labels.ts";
import { withManifestHash } from "../../model/manifest-hash.ts";
import { nextServiceSuffix, routePolicyPrefix } from "../../model/names.ts";
import type { GatewaySettings } from "../kind-settings.ts";
import type { Backend, RouteRef, RouteSpec } from "./spec.ts";

/** What clients of a route connect to; its backends listen on ports of their own. */
export const routePort = 80;

/** The labels that the watches select by. */
export function routeLabels(routeId: string): Record<string, string> {
  return { [labelKeys.routeId]: routeId, ...ownLabels(components.route) };
}

export function desiredService(spec: RouteSpec): Service {
  const { target, kept } = spec;
  const annotations = orderAnnotations(kept);
  return serviceOf(spec, { ...metadataOf(spec, spec.name), ...(annotations && { annotations }) }, target);
}

/** Leads to the backend that gets a part of the requests by hostname. */
export function desiredNextService(spec: RouteSpec): Service {
  return serviceOf(spec, metadataOf(spec, nextServiceName(spec)), spec.next);
}

export function nextServiceName({ name }: Pick<RouteRef, "name">): string {
  return name + nextServiceSuffix;
}

/** The key of the route that a Service with this key may be the second one of; undefined if it has no such name. */
export function routeOfNextService(key: string): string | undefined {
  return key.endsWith(nextServiceSuffix) ? key.slice(0, -nextServiceSuffix.length) : undefined;
}

/** What the seal of that Service says instead of the id of the route. No id begins like that. */
export function nextServiceId(routeId: string): string {
  return nextIdPrefix + routeId;
}

/** The id of the route in a seal, and whether the Service is the second one. */
export function routeOfSealedId(id: string): { readonly routeId: string; readonly isNext: boolean } {
  const isNext = id.startsWith(nextIdPrefix);
  return { routeId: isNext ? id.slice(nextIdPrefix.length) : id, isNext };
}

const nextIdPrefix = "_next.";

function serviceOf(spec: RouteSpec, metadata: Service["metadata"], to: Backend | undefined): Service {
  return withManifestHash<Service>({
    apiVersion: "v1",
    kind: "Service",
    ...(metadata && { metadata }),
    spec: {
      type: "ClusterIP",
      selector: backendLabels(spec, to?.deploymentId ?? ""),
      ports: [{ port: routePort, targetPort: to?.port ?? routePort, protocol: "TCP" }],
    },
  });
}

export interface RoutePolicy extends KubeObject {
  readonly metadata: ReturnType<typeof metadataOf> & { annotations?: Record<string, string> };
  readonly specs: readonly {
    readonly endpointSelector: EndpointSelector;
    readonly ingress: readonly {
      readonly fromEndpoints?: readonly EndpointSelector[];
      readonly fromEntities?: readonly ("cluster" | "ingress")[];
      readonly toPorts: readonly PortRule[];
    }[];
  }[];
}

export function routePolicyName({ name }: Pick<RouteRef, "name">): string {
  return routePolicyPrefix + name;
}

/** The name of the route that the policy with this name belongs to; undefined if it has no such name. */
export function routeOfPolicy(policyName: string): string | undefined {
  return policyName.startsWith(routePolicyPrefix) ? policyName.slice(routePolicyPrefix.length) : undefined;
}

/** For sentinels, the policy of the environment is enough. */
export function isExposed({ expose }: RouteSpec): boolean {
  return expose !== "nobody";
}

/** Without a Gateway, nobody may reach what it exposes. */
export function desiredPolicy(spec: RouteSpec, gateway?: GatewaySettings): RoutePolicy {
  // Cilium requires a rule. This one is for no pod.
  const isOpen = isExposed(spec) && (spec.expose !== "gateway" || gateway !== undefined);
  const backends = isOpen && spec.backends.length > 0 ? spec.backends : [nobody];
  const from = peersOf(spec, gateway);
  const ruleOf = ({ deploymentId, port }: Backend) => ({
    endpointSelector: { matchLabels: backendLabels(spec, deploymentId) },
    ingress: [{ ...from, toPorts: [{ ports: [{ port: String(port), protocol: "TCP" } as const] }] }],
  });
  return withManifestHash<RoutePolicy>({
    apiVersion: "cilium.io/v2",
    kind: "CiliumNetworkPolicy",
    metadata: metadataOf(spec, routePolicyName(spec)),
    specs: backends.map(ruleOf),
  });
}

function peersOf({ expose, namespace, workspaceId, environmentId }: RouteSpec, gateway?: GatewaySettings) {
  if (expose === "cluster") return { fromEntities: ["cluster"] } as const;
  if (expose === "gateway" && gateway !== undefined) {
    const { proxies } = gateway;
    if (proxies === "cilium") return { fromEntities: ["ingress"] } as const;
    // Cilium takes the namespace from the pod, never from its labels.
    return { fromEndpoints: [{ matchLabels: { [ciliumNamespaceLabel]: proxies.namespace } }] };
  }
  const matchLabels = {
    [ciliumNamespaceLabel]: namespace,
    ...ownLabels(components.deployment),
    [labelKeys.workspaceId]: workspaceId,
    [labelKeys.environmentId]: environmentId,
  };
  return { fromEndpoints: [{ matchLabels }] };
}

const nobody: Backend = { deploymentId: "", port: routePort };

/** The pods of a deployment, unless it is of another environment. */
function backendLabels({ environmentId }: RouteSpec, deploymentId: string): Record<string, string> {
  return {
    ...ownLabels(components.deployment),
    [labelKeys.environmentId]: environmentId,
    [labelKeys.deploymentId]: deploymentId,
  };
}

export function metadataOf(
  { namespace, workspaceId, projectId, environmentId, routeId }: RouteSpec,
  name: string,
) {
  return {
    name,
    namespace,
    labels: {
      [labelKeys.workspaceId]: workspaceId,
      [labelKeys.projectId]: projectId,
      [labelKeys.environmentId]: environmentId,
      ...routeLabels(routeId),
    },
  };
}
