// What the sentinels of an environment need to find and reach each other: a headless Service that
// resolves to all of them, and a policy that lets them talk. Both select the whole environment, so
// neither is owned by one sentinel's Deployment: they must not vanish under the others with it.
import type { Service } from "kubernetes-types/core/v1.js";
import type { IngressRules } from "../../model/ingress-rules.ts";
import { components } from "../../model/labels.ts";
import { withManifestHash } from "../../model/manifest-hash.ts";
import { gossipName, gossipPort, peerLabels, sentinelLabels } from "./identity.ts";
import type { SentinelSpec } from "./spec.ts";

export function desiredGossipService(spec: SentinelSpec): Service {
  return withManifestHash<Service>({
    apiVersion: "v1",
    kind: "Service",
    metadata: gossipMetadata(spec),
    spec: {
      type: "ClusterIP",
      clusterIP: "None",
      selector: peerLabels(spec),
      ports: [
        { name: "gossip-lan", port: gossipPort, targetPort: gossipPort, protocol: "TCP" },
        { name: "gossip-lan-udp", port: gossipPort, targetPort: gossipPort, protocol: "UDP" },
      ],
    },
  });
}

/** A selector without a namespace means that of the policy, so no pod of a tenant can pass for a peer. */
export function desiredGossipPolicy(spec: SentinelSpec): IngressRules {
  const peers = { matchLabels: peerLabels(spec) };
  const port = String(gossipPort);
  return withManifestHash<IngressRules>({
    apiVersion: "cilium.io/v2",
    kind: "CiliumNetworkPolicy",
    metadata: gossipMetadata(spec),
    spec: {
      endpointSelector: peers,
      ingress: [
        {
          fromEndpoints: [peers],
          toPorts: [
            {
              ports: [
                { port, protocol: "TCP" },
                { port, protocol: "UDP" },
              ],
            },
          ],
        },
      ],
    },
  });
}

function gossipMetadata(spec: SentinelSpec): IngressRules["metadata"] {
  return {
    name: gossipName(spec.name),
    namespace: spec.namespace,
    labels: sentinelLabels(spec, components.gossipLan),
  };
}
