// Builds the two objects of a route: the Service, and the policy that says who may reach its backends.
//
// - The Service selects the pods of one deployment, and with an empty id none: no pod has that.
// - The policy is a companion of the ingress policy of the environment, which admits sentinels only and stays as it is.
//   Cilium admits what any policy admits. It names each backend with its port, so it opens nothing else.
import type { Service } from "kubernetes-types/core/v1.js";
import type { KubeObject } from "../../kube/types.ts";
import type { EndpointSelector, PortRule } from "../../model/ingress-rules.ts";
import { orderAnnotations } from "../../model/kept-order.ts";
import { ciliumNamespaceLabel, components, labelKeys, ownLabels } from "../../model/labels.ts";
import { withManifestHash } from "../../model/manifest-hash.ts";
import { routePolicyPrefix } from "../../model/names.ts";
import type { Backend, RouteRef, RouteSpec } from "./spec.ts";

/** What clients of a route connect to; its backends listen on ports of their own. */
const routePort = 80;

/** The labels that the watches select by. */
export function routeLabels(routeId: string): Record<string, string> {
  return { [labelKeys.routeId]: routeId, ...ownLabels(components.route) };
}

export function desiredService(spec: RouteSpec): Service {
  const { target, kept } = spec;
  const annotations = orderAnnotations(kept);
  return withManifestHash<Service>({
    apiVersion: "v1",
    kind: "Service",
    metadata: { ...metadataOf(spec, spec.name), ...(annotations && { annotations }) },
    spec: {
      type: "ClusterIP",
      selector: backendLabels(spec, target?.deploymentId ?? ""),
      ports: [{ port: routePort, targetPort: target?.port ?? routePort, protocol: "TCP" }],
    },
  });
}

export interface RoutePolicy extends KubeObject {
  readonly metadata: ReturnType<typeof metadataOf> & { annotations?: Record<string, string> };
  readonly specs: readonly {
    readonly endpointSelector: EndpointSelector;
    readonly ingress: readonly {
      readonly fromEndpoints?: readonly EndpointSelector[];
      readonly fromEntities?: readonly "cluster"[];
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

export function desiredPolicy(spec: RouteSpec): RoutePolicy {
  const { expose, namespace } = spec;
  // Cilium requires a rule. This one is for no pod.
  const backends = isExposed(spec) && spec.backends.length > 0 ? spec.backends : [nobody];
  const peers = {
    [ciliumNamespaceLabel]: namespace,
    ...ownLabels(components.deployment),
    [labelKeys.workspaceId]: spec.workspaceId,
    [labelKeys.environmentId]: spec.environmentId,
  };
  const from =
    expose === "cluster"
      ? { fromEntities: ["cluster"] as const }
      : { fromEndpoints: [{ matchLabels: peers }] };
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

const nobody: Backend = { deploymentId: "", port: routePort };

/** The pods of a deployment, unless it is of another environment. */
function backendLabels({ environmentId }: RouteSpec, deploymentId: string): Record<string, string> {
  return {
    ...ownLabels(components.deployment),
    [labelKeys.environmentId]: environmentId,
    [labelKeys.deploymentId]: deploymentId,
  };
}

function metadataOf({ namespace, workspaceId, projectId, environmentId, routeId }: RouteSpec, name: string) {
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
