// The CustomResourceDefinition of HTTPRoute for embedded clusters, limited to what krane's need. The published one is tested on
// the real API server.
import type { CustomResourceDefinition } from "kubernetes-types/apiextensions/v1.js";

// The published types lack this field of a schema.
const preservesUnknownFields = { "x-kubernetes-preserve-unknown-fields": true };
const anything = { type: "object", ...preservesUnknownFields };

export const httpRouteDefinition: CustomResourceDefinition = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: {
    name: "httproutes.gateway.networking.k8s.io",
    annotations: { "api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/gateway-api/pull/2997" },
  },
  spec: {
    group: "gateway.networking.k8s.io",
    scope: "Namespaced",
    names: { plural: "httproutes", singular: "httproute", kind: "HTTPRoute", listKind: "HTTPRouteList" },
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: {
          openAPIV3Schema: { type: "object", properties: { spec: anything, status: anything } },
        },
      },
    ],
  },
};
