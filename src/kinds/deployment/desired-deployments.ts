// Looks up the desired state of one deployment, to tell whether a ReplicaSet is wanted. Reads the store on each call, so
// the result is never older than what the agent itself acts on.

import type { DesiredStore } from "../../engine/desired-store.ts";
import type { DeploymentSpec } from "./spec.ts";

export type DesiredDeployment =
  | { readonly kind: "wanted"; readonly deploymentId: string; readonly environmentId: string }
  | { readonly kind: "deleting" }
  /** The control plane sent it, but never with a valid spec. */
  | { readonly kind: "rejected" };

export interface DesiredDeployments {
  /** By `namespace/name` of the ReplicaSet; undefined if unknown. */
  find(key: string): DesiredDeployment | undefined;
}

export function desiredDeployments(store: Pick<DesiredStore<DeploymentSpec>, "get">): DesiredDeployments {
  return {
    find(key) {
      const entry = store.get(key);
      if (entry === undefined) return undefined;
      const { want, lastValid } = entry;
      if (want.kind === "delete") return { kind: "deleting" };
      if (lastValid === undefined) return { kind: "rejected" };
      const { deploymentId, environmentId } = lastValid;
      return { kind: "wanted", deploymentId, environmentId };
    },
  };
}
