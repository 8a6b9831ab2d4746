// The output of `krane why`. `cause` is one of a fixed set of codes that scripts can rely on; all other texts are for
// people and may change between versions.
import type { Difference } from "../kinds/kind-view.ts";

/** In the order in which they are checked; see explain.ts. */
export const causes = [
  /** The control plane has no such object. */
  "unknown-object",
  /** Its spec or its phase was written by a newer krane. */
  "unreadable",
  /** It was deleted on request. */
  "deleted",
  /** The newest release of the app did not become ready. */
  "release-failed",
  /** A release of the app is starting, and nothing is wrong with it. */
  "releasing",
  "releases-paused",
  /** No agent of its region has ever connected. */
  "agent-never-seen",
  /** The agent of its region stopped sending heartbeats. */
  "agent-silent",
  /** It is missing from the control plane, and its deletion is held back until an operator allows it. */
  "deletion-blocked",
  /** It, or the previous object of that name, is still being deleted. */
  "deletion-in-progress",
  /** krane rejected its spec. */
  "invalid-spec",
  /** Kubernetes or an admission webhook rejected it. */
  "refused-by-cluster",
  /** Its name is used by an object that is not krane's or has another id. */
  "name-taken",
  /** A webhook or policy of the cluster lowers the isolation of its pods, so it gets no new ones. */
  "isolation-lowered",
  /** A pod is less isolated than its template and is being replaced. */
  "weak-pods",
  /** Another field manager keeps overwriting what krane applies. */
  "contested",
  /** A CustomResourceDefinition that it needs is not installed. */
  "missing-crd",
  /** The Gateway does not send requests for its hostnames to it. */
  "not-at-gateway",
  /** A resource quota of its namespace is exhausted. */
  "quota",
  /** Its namespace is being deleted. */
  "namespace-terminating",
  /** The cluster rejects the agent's credentials. */
  "unauthenticated",
  /** krane lacks a permission in the cluster. */
  "forbidden",
  /** The last attempt failed for another reason and is retried. */
  "retrying",
  /** The agent is of a version that does not have this kind of object. */
  "agent-too-old",
  /** The agent's stream from the control plane is down. */
  "stream-down",
  /** The agent has not applied the newest version yet. */
  "not-settled",
  /** It is scaled to 0 pods and has none. */
  "paused",
  /** Pods from an older version cannot run; those of the newest one can. */
  "older-pods-failing",
  /** Its image cannot be pulled. */
  "image-pull",
  /** Its container is crash-looping. */
  "crash-loop",
  /** Its container cannot be created, for example because a Secret is missing. */
  "container-config",
  /** Its pods do not fit on any node. */
  "unschedulable",
  /** The node of its pods does not answer. */
  "node-lost",
  /** The cluster refuses to create its pods. */
  "pods-refused",
  /** A rollout made no progress before its deadline. */
  "rollout-stuck",
  /** Its pods fail for another reason. */
  "pods-failing",
  /** The agent has paused its status reports. */
  "reports-held-back",
  /** Its pods are not all ready yet. */
  "starting",
  /** Pods from an older version are still running. */
  "older-pods",
  /** It has more pods than it should. */
  "surplus-pods",
  /** Up to date, except for fields that the cluster itself sets. */
  "changed-by-cluster",
  /** Up to date. */
  "all-well",
] as const;

export type Cause = (typeof causes)[number];

export interface Explanation {
  readonly cause: Cause;
  /** One sentence. */
  readonly summary: string;
  /** The desired state; empty for an unknown object. */
  readonly desired: string;
  /** What the agent has applied. */
  readonly applied: string;
  /** What was last reported to run. */
  readonly live: string;
  readonly differences: readonly Difference[];
  /** Quoted from the agent, Kubernetes or the control plane; empty if there is nothing to quote. */
  readonly reason: string;
  /** What to do; empty if there is nothing to do. */
  readonly remedy: string;
}
