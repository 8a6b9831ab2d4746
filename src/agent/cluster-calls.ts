// Every call to the Kubernetes API that an agent makes, and why it has to: the rows of each kind, and what they share.
// This is the one list: the chart's roles are rendered from it, `krane doctor` asks the API server about each row, and
// tests fail on a call that is not in it and on a row that nothing uses.
//
// - Secrets are never listed or watched: whoever may do that reads every secret of the cluster.
// - Nothing here creates roles or tokens, or touches nodes. That alone binds no stolen token: a ReplicaSet can name any
//   service account, and a Secret can ask Kubernetes for a token. What may be in them, roles cannot say; the chart's
//   admission policy does, and has to take whatever krane writes.
import type { ResourceAttributes } from "kubernetes-types/authorization/v1.js";
import type { Config } from "../config/config.ts";
import type { CallingPart, ClusterCall, ClusterVerb } from "../kinds/cluster-call.ts";
import { allKinds } from "../kinds/kinds.ts";
import { events, namespaces, pods, replicaSets, secrets, tokenReviews } from "../kube/resources.ts";
import { pullSecretName } from "../model/pull-secret.ts";

export const clusterCalls: readonly ClusterCall[] = [
  ...allKinds.flatMap((kind) => kind.clusterCalls),
  {
    part: "agent",
    kind: namespaces,
    verbs: ["create"],
    why: "A namespace is made where it is missing, and otherwise left as it is.",
  },
  {
    part: "agent",
    kind: events,
    verbs: ["create"],
    why: "A deletion that is held back is told on the object itself.",
  },
  {
    part: "registry",
    kind: secrets,
    verbs: ["create"],
    why: "The registry's credentials are put beside the pods; names of namespaces are not known beforehand, and a create cannot be bound to a name.",
  },
  {
    part: "registry",
    kind: secrets,
    names: [pullSecretName],
    verbs: ["get", "patch"],
    why: "The registry's credentials are compared and replaced under their one name.",
  },
  {
    part: "secrets",
    kind: tokenReviews,
    verbs: ["create"],
    why: "Whoever asks for secrets shows a token, and the API server says whose it is.",
  },
  {
    part: "secrets",
    kind: pods,
    verbs: ["get"],
    why: "The pod of that token has to be alive and one of krane's.",
  },
  {
    part: "secrets",
    kind: replicaSets,
    verbs: ["get"],
    why: "That pod's owner says which deployment it belongs to.",
  },
];

/** The parts that an agent of this configuration has. */
export function callingParts({
  registry,
  vault,
}: Pick<Config, "registry" | "vault">): readonly CallingPart[] {
  return ["agent", ...(registry ? (["registry"] as const) : []), ...(vault ? (["secrets"] as const) : [])];
}

export interface AccessQuestion {
  readonly call: ClusterCall;
  readonly verb: ClusterVerb;
  /** The `resourceAttributes` of the review. Without a namespace they ask about all of them. */
  readonly attributes: ResourceAttributes;
}

/** The calls as questions to an API server, one for each verb and name, for a SelfSubjectAccessReview. */
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
