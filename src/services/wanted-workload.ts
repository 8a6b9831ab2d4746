// Checks that desired state includes the workload that a pod belongs to. Where the control plane has sent nothing about it
// yet, for example right after a start, the seal of its ReplicaSet counts. Tenants can write neither.
import type { DesiredDeployments } from "../kinds/deployment/desired-deployments.ts";
import type { WorkloadIdentity } from "./workload-identity.ts";

export type UnwantedReason =
  | "desired state names another deployment for this ReplicaSet"
  | "desired state names another environment for this ReplicaSet"
  | "the deployment is being deleted";

/** Neither allowed nor denied: the stream may not have delivered it yet. */
export type UndecidedReason =
  | "krane has not loaded its seal yet"
  | "krane has not taken over this ReplicaSet of the original yet"
  | "desired state does not name this ReplicaSet yet"
  | "the control plane has sent no valid spec for this ReplicaSet";

export type WantedOutcome =
  /** The environment comes from desired state, or from the seal. */
  | { readonly kind: "wanted"; readonly environmentId: string }
  | { readonly kind: "denied"; readonly reason: UnwantedReason }
  | { readonly kind: "undecided"; readonly reason: UndecidedReason };

export function judgeWanted(
  { key, deploymentId, environmentId, isSealed }: Omit<WorkloadIdentity, "original">,
  desired: DesiredDeployments,
): WantedOutcome {
  const found = desired.find(key);
  // krane sealed it when desired state named it, and the control plane has not said otherwise since.
  const unlessSealed = (reason: UndecidedReason): WantedOutcome =>
    isSealed ? { kind: "wanted", environmentId } : { kind: "undecided", reason };
  switch (found?.kind) {
    case undefined:
      return unlessSealed("desired state does not name this ReplicaSet yet");
    case "rejected":
      return unlessSealed("the control plane has sent no valid spec for this ReplicaSet");
    case "deleting":
      return denied("the deployment is being deleted");
    case "wanted":
      if (found.deploymentId !== deploymentId)
        return denied("desired state names another deployment for this ReplicaSet");
      if (found.environmentId !== environmentId)
        return denied("desired state names another environment for this ReplicaSet");
      return { kind: "wanted", environmentId: found.environmentId };
  }
}

function denied(reason: UnwantedReason) {
  return { kind: "denied", reason } as const;
}
