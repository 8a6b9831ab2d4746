// The type of the CiliumNetworkPolicies that krane itself creates: who may connect, and to which ports.
import type { KubeObject } from "../kube/types.ts";

export interface IngressRules extends KubeObject {
  readonly metadata: {
    name: string;
    namespace: string;
    labels: Record<string, string>;
    annotations?: Record<string, string>;
  };
  readonly spec: {
    readonly endpointSelector: EndpointSelector;
    readonly ingress: readonly {
      readonly fromEndpoints: readonly EndpointSelector[];
      readonly toPorts: readonly PortRule[];
    }[];
  };
}

export interface EndpointSelector {
  readonly matchLabels: Readonly<Record<string, string>>;
}

export interface PortRule {
  readonly ports: readonly { readonly port: string; readonly protocol: "TCP" | "UDP" }[];
}
