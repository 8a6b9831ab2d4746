// The rights that an agent needs for this kind.
import { pods, replicaSets } from "../../kube/resources.ts";
import { type ClusterCall, keep } from "../cluster-call.ts";

export const deploymentCalls: readonly ClusterCall[] = [
  {
    part: "agent",
    kind: replicaSets,
    verbs: keep,
    why: "A deployment is a ReplicaSet in the namespace of its workspace.",
  },
  {
    part: "agent",
    kind: pods,
    verbs: ["list", "watch"],
    why: "The control plane is told which pods of a deployment run, and where.",
  },
];
