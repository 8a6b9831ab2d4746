// The list of calls as questions to an API server: one for each verb and name, in the words of a
// SelfSubjectAccessReview.
import type { ResourceAttributes } from "kubernetes-types/authorization/v1.js";
import type { ClusterCall, ClusterVerb } from "../kinds/cluster-call.ts";

export interface AccessQuestion {
  readonly call: ClusterCall;
  readonly verb: ClusterVerb;
  /** The `resourceAttributes` of the review. Without a namespace they ask about all of them. */
  readonly attributes: ResourceAttributes;
}

export function accessQuestions(calls: readonly ClusterCall[]): readonly AccessQuestion[] {
  return calls.flatMap((call) =>
    call.verbs.flatMap((verb) => {
      const attributes: ResourceAttributes = {
        group: call.kind.group,
        resource: call.kind.plural,
        verb,
        ...(call.subresource !== undefined && { subresource: call.subresource }),
        ...(call.namespace !== undefined && { namespace: call.namespace }),
      };
      if (call.names === undefined) return [{ call, verb, attributes }];
      return call.names.map((name) => ({ call, verb, attributes: { ...attributes, name } }));
    }),
  );
}
