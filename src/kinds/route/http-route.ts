// The HTTPRoute of a route: which requests the Gateway sends to its Services. All fields that the server would default are
// written out, so that nothing of its spec is anybody else's.
import type { KubeObject } from "../../kube/types.ts";
import { withManifestHash } from "../../model/manifest-hash.ts";
import type { GatewaySettings } from "../kind-settings.ts";
import { metadataOf, nextServiceName, routePort } from "./desired.ts";
import type { RouteSpec } from "./spec.ts";

const group = "gateway.networking.k8s.io";

export interface HttpRoute extends KubeObject {
  readonly metadata: ReturnType<typeof metadataOf> & { annotations?: Record<string, string> };
  readonly spec: {
    readonly parentRefs: readonly {
      readonly group: string;
      readonly kind: "Gateway";
      readonly namespace: string;
      readonly name: string;
      readonly sectionName?: string;
    }[];
    readonly hostnames: readonly string[];
    readonly rules: readonly {
      readonly matches: readonly { readonly path: { readonly type: "PathPrefix"; readonly value: "/" } }[];
      readonly backendRefs: readonly BackendRef[];
    }[];
  };
}

interface BackendRef {
  readonly group: "";
  readonly kind: "Service";
  readonly name: string;
  readonly port: number;
  readonly weight: number;
}

export function desiredHttpRoute(spec: RouteSpec, gateway: GatewaySettings): HttpRoute {
  const { namespace, name, listener } = gateway;
  return withManifestHash<HttpRoute>({
    apiVersion: `${group}/v1`,
    kind: "HTTPRoute",
    metadata: metadataOf(spec, spec.name),
    spec: {
      parentRefs: [
        { group, kind: "Gateway", namespace, name, ...(listener !== undefined && { sectionName: listener }) },
      ],
      hostnames: spec.hostnames,
      rules: [{ matches: [{ path: { type: "PathPrefix", value: "/" } }], backendRefs: backendsOf(spec) }],
    },
  });
}

/** The weights are percentages: they always add up to 100. */
function backendsOf(spec: RouteSpec): readonly BackendRef[] {
  const { name, next } = spec;
  const backend = (service: string, weight: number) =>
    ({ group: "", kind: "Service", name: service, port: routePort, weight }) as const;
  if (next === undefined) return [backend(name, 100)];
  return [backend(name, 100 - next.percent), backend(nextServiceName(spec), next.percent)];
}
