// The manifest of a namespace that krane creates.
import type { Namespace } from "kubernetes-types/core/v1.js";
import { components, ownLabels } from "./labels.ts";

/**
 * The namespace of a workspace. krane creates it if it is missing, and never patches or deletes it, because others may use
 * it too, and because the right to patch namespaces would allow lifting the Pod Security Standards of any of them. Several
 * controllers create namespaces, so its component is its own: the result must not depend on which one is first.
 */
export function desiredNamespace(name: string): Namespace {
  return {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name, labels: ownLabels(components.namespace) },
  };
}
