// Lists every Kubernetes API call that an agent makes, and why it needs it: the rows of each kind, and those that kinds
// share. The chart's roles are rendered from this list, `krane doctor` checks each row with the API server, and tests
// fail on a call that is not listed and on a row that nothing uses.
//
// - Secrets are never listed or watched: that permission would expose every secret in the cluster.
// - Nothing here creates roles or tokens, or touches nodes. That alone does not contain a stolen token: a ReplicaSet can
//   name any service account, and a Secret can ask Kubernetes for a token. Roles cannot restrict the content of objects;
//   the chart's admission policy does, and it must accept everything that krane writes.
import type { ResourceAttributes } from "kubernetes-types/authorization/v1.js";
import type { Config } from "../config/config.ts";
import { clusterIdNamespace, sealSecretName } from "../engine/seal-keys.ts";
import type { CallingPart, ClusterCall, ClusterVerb } from "../kinds/cluster-call.ts";
import { allKinds } from "../kinds/kinds.ts";
import {
  configMaps,
  events,
  leases,
  namespaces,
  pods,
  replicaSets,
  secrets,
  tokenReviews,
} from "../kube/resources.ts";
import { pullSecretName } from "../model/pull-secret.ts";

export const clusterCalls: readonly ClusterCall[] = [
  ...allKinds.flatMap((kind) => kind.clusterCalls),
  {
    part: "agent",
    kind: namespaces,
    verbs: ["create"],
    why: "The agent creates missing namespaces, and does not change existing ones.",
  },
  {
    part: "agent",
    kind: namespaces,
    names: [clusterIdNamespace],
    verbs: ["get"],
    why: "The uid of this namespace identifies the cluster in the agent's seal.",
  },
  {
    part: "agent",
    kind: secrets,
    isForState: true,
    verbs: ["create"],
    why: "The agent creates the key of its seal at the first start; RBAC cannot restrict create to a name.",
  },
  {
    part: "agent",
    kind: secrets,
    isForState: true,
    names: [sealSecretName],
    verbs: ["get"],
    why: "The agent reads the key of its seal, and never changes it.",
  },
  {
    part: "agent",
    kind: events,
    verbs: ["create"],
    why: "The agent records an Event on an object that it deletes, repairs or evicts, or whose deletion it holds back.",
  },
  {
    part: "agent",
    kind: leases,
    isForState: true,
    verbs: ["get", "create", "patch"],
    why: "The agent that holds the Lease of its region writes, and the others wait; only in krane's own namespace.",
  },
  {
    part: "registry",
    kind: secrets,
    verbs: ["create"],
    why: "Pods need the registry's credentials in their own namespace; namespace names are not known in advance, and RBAC cannot restrict create to a name.",
  },
  {
    part: "registry",
    kind: secrets,
    names: [pullSecretName],
    verbs: ["get", "patch"],
    why: "The agent compares and updates the registry's credentials, which always have the same name.",
  },
  {
    part: "secrets",
    kind: tokenReviews,
    verbs: ["create"],
    why: "A pod that requests secrets sends a token, and the API server identifies its owner.",
  },
  {
    part: "secrets",
    kind: pods,
    verbs: ["get"],
    why: "The pod of that token must exist and be managed by krane.",
  },
  {
    part: "secrets",
    kind: replicaSets,
    verbs: ["get"],
    why: "The owner of that pod identifies its deployment.",
  },
  {
    part: "scheduler",
    kind: configMaps,
    isForState: true,
    verbs: ["get", "list", "create", "patch", "delete"],
    why: "Orders of SchedulerService are recorded in krane's own namespace, so that they survive a restart.",
  },
  {
    part: "logs",
    kind: pods,
    subresource: "log",
    verbs: ["get"],
    why: "People read the logs of deployments through the control plane; RBAC cannot restrict this to krane's pods, so the agent's token can read the log of every pod.",
  },
  {
    part: "logs",
    kind: pods,
    verbs: ["get", "list"],
    why: "The agent reads the logs of pods only that are proven to be krane's.",
  },
  {
    part: "logs",
    kind: replicaSets,
    verbs: ["get"],
    why: "The owner of such a pod identifies its deployment.",
  },
];

/** The parts that are enabled in this configuration. */
export function callingParts({
  registry,
  vault,
  scheduler,
  gateway,
  logs,
}: Pick<Config, "registry" | "vault" | "scheduler" | "gateway" | "logs">): readonly CallingPart[] {
  return [
    "agent",
    ...(registry ? (["registry"] as const) : []),
    ...(vault ? (["secrets"] as const) : []),
    ...(scheduler ? (["scheduler"] as const) : []),
    ...(gateway ? (["gateway"] as const) : []),
    ...(logs.enabled ? (["logs"] as const) : []),
  ];
}

export interface AccessReview {
  readonly call: ClusterCall;
  readonly verb: ClusterVerb;
  /** The `resourceAttributes` of the review. Without a namespace they cover all namespaces. */
  readonly attributes: ResourceAttributes;
}

/** The SelfSubjectAccessReviews that cover the calls: one for each verb and name. */
export function accessReviews(
  calls: readonly ClusterCall[],
  stateNamespace: string,
): readonly AccessReview[] {
  return calls.flatMap((call) =>
    call.verbs.flatMap((verb) => {
      const namespace = call.isForState ? stateNamespace : call.namespace;
      const attributes: ResourceAttributes = {
        group: call.kind.group,
        resource: call.kind.plural,
        verb,
        ...(call.subresource !== undefined && { subresource: call.subresource }),
        ...(namespace !== undefined && { namespace }),
      };
      if (call.names === undefined) return [{ call, verb, attributes }];
      return call.names.map((name) => ({ call, verb, attributes: { ...attributes, name } }));
    }),
  );
}
