// The CustomResourceDefinition of CiliumNetworkPolicy for the embedded cluster, limited to what krane's policies
// need. Without it krane would hold every deployment back (K8).
import type { CustomResourceDefinition } from "kubernetes-types/apiextensions/v1.js";

// The published types lack this field of a schema.
const preservesUnknownFields = { "x-kubernetes-preserve-unknown-fields": true };
const rule = { type: "object", ...preservesUnknownFields };

export const ciliumDefinition: CustomResourceDefinition = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "ciliumnetworkpolicies.cilium.io" },
  spec: {
    group: "cilium.io",
    scope: "Namespaced",
    names: {
      plural: "ciliumnetworkpolicies",
      singular: "ciliumnetworkpolicy",
      shortNames: ["cnp", "ciliumnp"],
      kind: "CiliumNetworkPolicy",
      listKind: "CiliumNetworkPolicyList",
    },
    versions: [
      {
        name: "v2",
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: "object",
            properties: { spec: rule, specs: { type: "array", items: rule } },
          },
        },
      },
    ],
  },
};
