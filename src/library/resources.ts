// The kinds of Kubernetes that krane makes, for those who want to look at them. What they hold is not typed
// further: a program that wants types brings those of the Kubernetes client that it uses anyway.
import * as known from "../kube/resources.ts";
import type { KubeObject, ResourceKind } from "../kube/types.ts";

export interface LiveObject extends KubeObject {
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly status?: Readonly<Record<string, unknown>>;
  readonly data?: Readonly<Record<string, string>>;
}

export const kinds = {
  namespaces: live(known.namespaces),
  secrets: live(known.secrets),
  pods: live(known.pods),
  services: live(known.services),
  replicaSets: live(known.replicaSets),
  appsDeployments: live(known.appsDeployments),
  podDisruptionBudgets: live(known.podDisruptionBudgets),
  ciliumNetworkPolicies: live(known.ciliumNetworkPolicies),
};

function live(kind: ResourceKind): ResourceKind<LiveObject> {
  return kind as ResourceKind<LiveObject>;
}
