// The labels and annotations that krane writes and reads. They are shared with the control plane,
// with network policies and with objects that older agents left in clusters, so a key or value
// here never changes; only new ones are added.

/** Marks an object as krane's. With the field manager of the same name it is what ownership rests on (K4). */
export const managedBy = "krane";

/** The name under which krane applies. */
export const fieldManager = "krane";

export const labelKeys = {
  managedBy: "app.kubernetes.io/managed-by",
  component: "app.kubernetes.io/component",
  workspaceId: "unkey.com/workspace.id",
  projectId: "unkey.com/project.id",
  environmentId: "unkey.com/environment.id",
  /** Identity of a deployment: the whole selector of its ReplicaSet. */
  deploymentId: "unkey.com/deployment.id",
  buildId: "unkey.com/build.id",
  sentinelId: "unkey.com/sentinel.id",
  networkPolicyId: "unkey.com/networkpolicy.id",
  /** Asks the admission webhook of the platform to put the secrets injector into a pod. */
  inject: "unkey.com/inject",
} as const;

/** What an object is for. */
export const components = {
  deployment: "deployment",
  sentinel: "sentinel",
  ciliumNetworkPolicy: "ciliumnetworkpolicy",
  gossipLan: "gossip-lan",
  pullSecret: "pull-secret",
} as const;

export type Component = (typeof components)[keyof typeof components];

export const annotationKeys = {
  /** On pods: the deployment that a token of this pod speaks for. Compared with the label of the same meaning. */
  deploymentId: "unkey.com/deployment-id",
  /** On objects: the hash of the manifest that was applied last, so that an equal one need not be sent (K11). */
  manifestHash: "krane.unkey.com/manifest-hash",
  /** On pod templates and so on pods: tells pods of the present template from older ones. */
  templateHash: "krane.unkey.com/template-hash",
  /** On objects that the control plane did not ask for: who did. It is never asked about them. */
  origin: "krane.unkey.com/origin",
  /** On such objects: what was asked for, so that they are kept as ordered after a restart too. */
  order: "krane.unkey.com/order",
  /** On such objects: a token of whoever asked. */
  readinessId: "krane.unkey.com/readiness-id",
} as const;

/** The label that Cilium derives from a pod's namespace; known to its selectors only. */
export const ciliumNamespaceLabel = "io.kubernetes.pod.namespace";

/** The namespace of all sentinels. */
export const sentinelNamespace = "sentinel";

/** The pools of nodes that the pods of tenants and of sentinels tolerate the taints of. */
export const customerNodeClass = "untrusted";
export const sentinelNodeClass = "sentinel";

/** What every object carries that krane makes for a component. */
export function ownLabels(component: Component): Readonly<Record<string, string>> {
  return { [labelKeys.managedBy]: managedBy, [labelKeys.component]: component };
}

/** The selector that lists and watches find these objects by. */
export function ownSelector(component: Component): string {
  return Object.entries(ownLabels(component))
    .map(([key, value]) => `${key}=${value}`)
    .join();
}
