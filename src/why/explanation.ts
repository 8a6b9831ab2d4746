// The answer to "why is this object not as I want it?". The cause is a closed word for programs; everything else
// is for people and may be put differently in another version.
import type { Difference } from "../kinds/kind-view.ts";

/** In the order in which they are looked for; see explain.ts. */
export const causes = [
  /** The control plane has no such object. */
  "unknown-object",
  /** What is wanted of it, or how far it has come, was written by a newer krane. */
  "unreadable",
  /** Its deletion was ordered and is done. */
  "deleted",
  /** No agent of its region was ever heard of. */
  "agent-never-seen",
  /** The agent of its region has fallen silent. */
  "agent-silent",
  /** It seems to be unwanted, and nobody has said that it may be deleted. */
  "deletion-blocked",
  /** It, or what had its name before, is being deleted and is not gone yet. */
  "deletion-in-progress",
  /** krane cannot make sense of its description. */
  "invalid-spec",
  /** Kubernetes, or a webhook of the cluster, does not take it as it is. */
  "refused-by-cluster",
  /** Its name belongs to something that is not krane's, or to another id. */
  "name-taken",
  /** Somebody else keeps changing what krane applied. */
  "contested",
  /** The cluster lacks a kind of object that it needs. */
  "missing-crd",
  /** A quota of its namespace is used up. */
  "quota",
  /** Its namespace is being deleted. */
  "namespace-terminating",
  /** The cluster does not take the agent's credentials. */
  "unauthenticated",
  /** krane may not do in the cluster what it would have to. */
  "forbidden",
  /** Something else failed, and is tried again. */
  "retrying",
  /** The agent does not hear of changes. */
  "stream-down",
  /** The agent has not got to its newest version yet. */
  "not-settled",
  /** It is to have no pods, and has none. */
  "paused",
  /** Pods of an earlier description cannot run, and those of the newest one can. */
  "older-pods-failing",
  /** Its image cannot be pulled. */
  "image-pull",
  /** Its program ends again and again. */
  "crash-loop",
  /** Its container cannot be made from what its pods refer to. */
  "container-config",
  /** No node takes its pods. */
  "unschedulable",
  /** The cluster refuses to make its pods. */
  "pods-refused",
  /** A roll-out does not come to its end. */
  "rollout-stuck",
  /** Its pods fail in another way. */
  "pods-failing",
  /** The agent cannot report what runs. */
  "reports-held-back",
  /** Its pods are not all ready yet. */
  "starting",
  /** Pods of an earlier description still run. */
  "older-pods",
  /** It has more pods than it should. */
  "surplus-pods",
  /** As it should be. */
  "all-well",
] as const;

export type Cause = (typeof causes)[number];

export interface Explanation {
  readonly cause: Cause;
  /** One sentence. */
  readonly summary: string;
  /** What is wanted; empty where nothing is. */
  readonly desired: string;
  /** What the agent made of it. */
  readonly applied: string;
  /** What was last seen to run. */
  readonly live: string;
  readonly differences: readonly Difference[];
  /** In the words of whoever said so: the agent, Kubernetes, a server. Empty where nobody had to. */
  readonly reason: string;
  /** What to do; empty where there is nothing to do. */
  readonly remedy: string;
}
