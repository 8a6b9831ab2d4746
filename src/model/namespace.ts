// The namespace of a workspace. It is created where it is missing and used as it is where it exists:
// never patched, never deleted, because others may keep things there too.
import type { Namespace } from "kubernetes-types/core/v1.js";
import { labelKeys, managedBy } from "./labels.ts";

// Only the label that says who made it. Several controllers create namespaces, and whoever comes
// first must not decide what the others find.
export function desiredNamespace(name: string): Namespace {
  return {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name, labels: { [labelKeys.managedBy]: managedBy } },
  };
}
