// Who may talk to the deployments of one environment: the sentinels of that environment, and krane itself
// where it fetches documents from them, on the ports that the deployments listen on. One policy per environment, because two environments share the
// namespace of their workspace and each must keep the other's sentinels out.
import { hash } from "node:crypto";
import type { IngressRules, PortRule } from "../../model/ingress-rules.ts";
import {
  ciliumNamespaceLabel,
  components,
  labelKeys,
  ownLabels,
  sentinelNamespace,
} from "../../model/labels.ts";
import { withManifestHash } from "../../model/manifest-hash.ts";

export interface PolicyEnvironment {
  readonly namespace: string;
  readonly workspaceId: string;
  readonly environmentId: string;
}

/** At least one port: a rule of Cilium that names none opens all of them. */
export type Ports = readonly [number, ...number[]];

// The limit of one rule in the definition of CiliumNetworkPolicy; more ports make more rules.
const portsPerRule = 40;

/** Ids differ in case and length, names of objects may not, so the name is made from a hash of the id. */
export function ingressPolicyName(environmentId: string): string {
  return `allow-sentinel-ingress-${hash("sha256", environmentId).slice(0, 16)}`;
}

/** `scraperNamespace`: the namespace whose pods may also call; that of krane, where it has to. */
export function desiredIngressPolicy(
  environment: PolicyEnvironment,
  ports: Ports,
  scraperNamespace?: string,
): IngressRules {
  const { namespace, workspaceId, environmentId } = environment;
  const tenant = { [labelKeys.workspaceId]: workspaceId, [labelKeys.environmentId]: environmentId };
  return withManifestHash<IngressRules>({
    apiVersion: "cilium.io/v2",
    kind: "CiliumNetworkPolicy",
    metadata: {
      name: ingressPolicyName(environmentId),
      namespace,
      labels: { ...tenant, ...ownLabels(components.deployment) },
    },
    spec: {
      endpointSelector: {
        matchLabels: { ...ownLabels(components.deployment), [labelKeys.environmentId]: environmentId },
      },
      ingress: [
        {
          fromEndpoints: [
            { matchLabels: { [ciliumNamespaceLabel]: sentinelNamespace, ...tenant } },
            ...(scraperNamespace === undefined
              ? []
              : [{ matchLabels: { [ciliumNamespaceLabel]: scraperNamespace } }]),
          ],
          toPorts: portRules(ports),
        },
      ],
    },
  });
}

/** The same whatever the order in which deployments came. */
function portRules(ports: Ports): PortRule[] {
  const distinct = [...new Set(ports)].sort((a, b) => a - b);
  const rules: PortRule[] = [];
  for (let from = 0; from < distinct.length; from += portsPerRule) {
    const some = distinct.slice(from, from + portsPerRule);
    rules.push({ ports: some.map((port) => ({ port: String(port), protocol: "TCP" })) });
  }
  return rules;
}
