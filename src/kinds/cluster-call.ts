// A call to the Kubernetes API that an agent makes, as an RBAC permission.
import type { ResourceKind } from "../kube/types.ts";

/** As RBAC names them. A server-side apply is a `patch`, and a `create` as well where the object is new. */
export type ClusterVerb = "get" | "list" | "watch" | "create" | "patch" | "delete";

/** What of an agent makes the call: all of them, one that has `[registry]`, or one that has `[vault]`. */
export type CallingPart = "agent" | "registry" | "secrets";

export interface ClusterCall {
  readonly part: CallingPart;
  readonly kind: ResourceKind;
  readonly subresource?: string;
  readonly verbs: readonly ClusterVerb[];
  /** Absent: in every namespace, or of the whole cluster. */
  readonly namespace?: string;
  /** Absent: objects of any name. */
  readonly names?: readonly string[];
  /** One sentence for the operator who grants it. */
  readonly why: string;
}

/** The verbs needed to own objects of a kind. */
export const keep: readonly ClusterVerb[] = ["get", "list", "watch", "create", "patch", "delete"];
