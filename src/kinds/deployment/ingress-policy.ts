// Builds the ingress policy of an environment. It admits the sentinels of the environment, and krane itself if it
// fetches documents from the deployments, on the ports that the deployments listen on. There is one policy per
// environment, because the environments of a workspace share a namespace and each must keep the other's sentinels out.
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
import { ingressPolicyPrefix } from "../../model/names.ts";

export interface PolicyEnvironment {
  readonly namespace: string;
  readonly workspaceId: string;
  readonly environmentId: string;
}

/** At least one port: a Cilium rule without ports admits all of them. */
export type Ports = readonly [number, ...number[]];

// The limit per rule in the CRD of CiliumNetworkPolicy; more ports need more rules.
const portsPerRule = 40;

/** The name uses a hash of the id, because ids may have upper case and lengths that object names may not. */
export function ingressPolicyName(environmentId: string): string {
  return `${ingressPolicyPrefix}${hash("sha256", environmentId).slice(0, 16)}`;
}

/** `scraperNamespace`: a namespace whose pods are admitted too: krane's own, if it fetches documents. */
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

/** The result does not depend on the order of the deployments. */
function portRules(ports: Ports): PortRule[] {
  const distinct = [...new Set(ports)].sort((a, b) => a - b);
  const rules: PortRule[] = [];
  for (let from = 0; from < distinct.length; from += portsPerRule) {
    const some = distinct.slice(from, from + portsPerRule);
    rules.push({ ports: some.map((port) => ({ port: String(port), protocol: "TCP" })) });
  }
  return rules;
}
