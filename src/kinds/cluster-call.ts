// A call to the Kubernetes API that an agent makes, as an RBAC permission.
import type { ResourceKind } from "../kube/types.ts";

/** RBAC verbs. A server-side apply needs `patch`, and also `create` if the object is new. */
export type ClusterVerb = "get" | "list" | "watch" | "create" | "patch" | "delete";

/** Which agents make the call: all, or those with `[registry]`, `[vault]`, `[scheduler]`, `[gateway]` or `logs.enabled`. */
export type CallingPart = "agent" | "registry" | "secrets" | "scheduler" | "gateway" | "logs";

export interface ClusterCall {
  readonly part: CallingPart;
  readonly kind: ResourceKind;
  readonly subresource?: string;
  readonly verbs: readonly ClusterVerb[];
  /** Absent: all namespaces, or cluster-scoped. */
  readonly namespace?: string;
  /** Selects krane's own objects of a kind that it keeps; absent if krane may not list them. */
  readonly labelSelector?: string;
  /** Only in the namespace where krane keeps its own objects. */
  readonly isForState?: true;
  /** Absent: objects with any name. */
  readonly names?: readonly string[];
  /** One sentence for the operator who grants it. */
  readonly why: string;
}

/** The verbs needed to own objects of a kind. */
export const keep: readonly ClusterVerb[] = ["get", "list", "watch", "create", "patch", "delete"];
