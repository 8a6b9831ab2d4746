// The labels and annotations that krane writes and reads. The control plane, network policies and objects from older
// agents use them too, so a key or value here never changes; only new ones are added.

/** Marks an object as krane's, for people and for selectors. Anybody can write it; the seal is the proof (K4). */
export const managedBy = "krane";

/** The name under which krane applies. */
export const fieldManager = "krane";

export const labelKeys = {
  managedBy: "app.kubernetes.io/managed-by",
  component: "app.kubernetes.io/component",
  workspaceId: "unkey.com/workspace.id",
  projectId: "unkey.com/project.id",
  environmentId: "unkey.com/environment.id",
  /** The identity of a deployment, and the whole selector of its ReplicaSet. */
  deploymentId: "unkey.com/deployment.id",
  buildId: "unkey.com/build.id",
  sentinelId: "unkey.com/sentinel.id",
  networkPolicyId: "unkey.com/networkpolicy.id",
  routeId: "unkey.com/route.id",
  /** On krane's own records: the controller and the region that they belong to. */
  controller: "krane.unkey.com/controller",
  region: "krane.unkey.com/region",
  /** Asks the platform's admission webhook to inject the secrets injector into a pod. */
  inject: "unkey.com/inject",
} as const;

/** What an object is for. */
export const components = {
  deployment: "deployment",
  sentinel: "sentinel",
  ciliumNetworkPolicy: "ciliumnetworkpolicy",
  gossipLan: "gossip-lan",
  route: "route",
  pullSecret: "pull-secret",
  /** The keys that krane seals with. */
  seal: "seal",
  namespace: "namespace",
  order: "order",
  /** Who leads a region. */
  lease: "lease",
} as const;

export type Component = (typeof components)[keyof typeof components];

export const annotationKeys = {
  /** On objects: proves that this krane wrote them; see seal.ts. */
  seal: "krane.unkey.com/seal",
  /** On pods: the deployment that a token of this pod authenticates. Compared with the label of the same meaning. */
  deploymentId: "unkey.com/deployment-id",
  /** On objects: the hash of the last applied manifest, so that an equal one need not be sent (K11). */
  manifestHash: "krane.unkey.com/manifest-hash",
  /** On pod templates, and so on pods: distinguishes pods of the current template from older ones. */
  templateHash: "krane.unkey.com/template-hash",
  /** On a ReplicaSet that krane holds at fewer pods than wanted, because new ones would be less isolated. */
  held: "krane.unkey.com/held",
  /** On objects that did not come from the stream: who ordered them. For people; krane does not read it. */
  origin: "krane.unkey.com/origin",
  /** On such objects: a token of the caller. For people; krane does not read it. */
  readinessId: "krane.unkey.com/readiness-id",
  /** On the Lease: the holder, and the URL of its RPC port. */
  leaderUrl: "krane.unkey.com/leader-url",
  /** On the Lease: the holder, and the URL of its control plane. */
  leaderControlPlane: "krane.unkey.com/leader-control-plane",
} as const;

/** The label that Cilium derives from a pod's namespace; only its selectors know it. */
export const ciliumNamespaceLabel = "io.kubernetes.pod.namespace";

/** The namespace of all sentinels. */
export const sentinelNamespace = "sentinel";

/** The node pools whose taints the pods of tenants and of sentinels tolerate. */
export const customerNodeClass = "untrusted";
export const sentinelNodeClass = "sentinel";

/** The taint of each of these pools. */
export const nodePoolTaints = [
  { key: "karpenter.sh/nodepool", value: customerNodeClass, effect: "NoSchedule" },
  { key: "node-class", value: sentinelNodeClass, effect: "NoSchedule" },
] as const;

/** What pods need to run on a node with the taint of their pool. */
export function poolToleration(pool: (typeof nodePoolTaints)[number]["value"]) {
  return nodePoolTaints
    .filter(({ value }) => value === pool)
    .map(({ key, value, effect }) => ({ key, operator: "Equal", value, effect }) as const);
}

/** The labels of every object that krane creates for a component. */
export function ownLabels(component: Component): Readonly<Record<string, string>> {
  return { [labelKeys.managedBy]: managedBy, [labelKeys.component]: component };
}

/** The selector for lists and watches of these objects. */
export function ownSelector(component: Component): string {
  return Object.entries(ownLabels(component))
    .map(([key, value]) => `${key}=${value}`)
    .join();
}
