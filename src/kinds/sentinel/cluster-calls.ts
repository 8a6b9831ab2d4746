// The rights that an agent needs for this kind.
import { appsDeployments, podDisruptionBudgets, services } from "../../kube/resources.ts";
import { sentinelNamespace } from "../../model/labels.ts";
import { type ClusterCall, keep } from "../cluster-call.ts";

export const sentinelCalls: readonly ClusterCall[] = [
  {
    part: "agent",
    kind: appsDeployments,
    namespace: sentinelNamespace,
    verbs: keep,
    why: "A sentinel is an apps/v1 Deployment.",
  },
  {
    part: "agent",
    kind: services,
    namespace: sentinelNamespace,
    verbs: keep,
    why: "A sentinel is reached through a Service, and its replicas find one another through a second one.",
  },
  {
    part: "agent",
    kind: podDisruptionBudgets,
    namespace: sentinelNamespace,
    verbs: keep,
    why: "A drained node does not take all replicas of a sentinel at once.",
  },
];
