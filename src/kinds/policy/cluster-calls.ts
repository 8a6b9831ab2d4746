// The rights that an agent needs for this kind.
import { ciliumNetworkPolicies } from "../../kube/resources.ts";
import { type ClusterCall, keep } from "../cluster-call.ts";

export const policyCalls: readonly ClusterCall[] = [
  {
    part: "agent",
    kind: ciliumNetworkPolicies,
    verbs: keep,
    why: "A policy says who may reach the pods of a deployment or a sentinel, and is there before they are.",
  },
];
