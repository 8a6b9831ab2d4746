// The CiliumNetworkPolicies that krane writes of its own accord: who may come in, and on which ports.
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
