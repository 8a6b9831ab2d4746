// The smallest valid objects of each kind, for cases to add their one point to.
import type { Kind, Manifest } from "./manifest.ts";

export const namespaces = clusterKind("v1", "Namespace", "namespaces");
export const nodes = clusterKind("v1", "Node", "nodes");
export const pods = namespacedKind("v1", "Pod", "pods");
export const services = namespacedKind("v1", "Service", "services");
export const secrets = namespacedKind("v1", "Secret", "secrets");
export const serviceAccounts = namespacedKind("v1", "ServiceAccount", "serviceaccounts");
export const events = namespacedKind("v1", "Event", "events");
export const replicaSets = namespacedKind("apps/v1", "ReplicaSet", "replicasets");
export const appsDeployments = namespacedKind("apps/v1", "Deployment", "deployments");
export const podDisruptionBudgets = namespacedKind(
  "policy/v1",
  "PodDisruptionBudget",
  "poddisruptionbudgets",
);
export const leases = namespacedKind("coordination.k8s.io/v1", "Lease", "leases");
export const runtimeClasses = clusterKind("node.k8s.io/v1", "RuntimeClass", "runtimeclasses");
export const customResourceDefinitions = clusterKind(
  "apiextensions.k8s.io/v1",
  "CustomResourceDefinition",
  "customresourcedefinitions",
);
export const ciliumNetworkPolicies = namespacedKind(
  "cilium.io/v2",
  "CiliumNetworkPolicy",
  "ciliumnetworkpolicies",
);
export const tokenReviews = clusterKind("authentication.k8s.io/v1", "TokenReview", "tokenreviews");
export const subjectAccessReviews = clusterKind(
  "authorization.k8s.io/v1",
  "SubjectAccessReview",
  "subjectaccessreviews",
);
export const selfSubjectAccessReviews = clusterKind(
  "authorization.k8s.io/v1",
  "SelfSubjectAccessReview",
  "selfsubjectaccessreviews",
);

// Created at a subresource of another kind.
const core = { group: "", version: "v1" };
export const tokenRequests: Kind = {
  ...namespacedKind("authentication.k8s.io/v1", "TokenRequest", serviceAccounts.plural),
  servedBy: core,
};
export const evictions: Kind = { ...namespacedKind("policy/v1", "Eviction", pods.plural), servedBy: core };

/** Created under a pod, as the scheduler does. */
export const bindings: Kind = { group: "", version: "v1", kind: "Binding", plural: "pods", namespaced: true };

export const image = "registry.example/app:1";

/** A scheduler that nobody runs, so that a pod stays Pending and its status the test's own. */
export const unscheduled = "nobody";

type Fields = Readonly<Record<string, unknown>>;

/** The everyday object: a Secret has no controller, no generation and no defaults but its type. */
export function secret(
  name: string,
  data: Readonly<Record<string, string>> = {},
  metadata: Fields = {},
): Manifest {
  const encoded = Object.entries(data).map(([key, value]) => [key, base64(value)]);
  const content = encoded.length === 0 ? {} : { data: Object.fromEntries(encoded) };
  return { metadata: { name, ...metadata }, ...content };
}

export function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}

export function container(name: string, fields: Fields = {}): Fields {
  return { name, image, ...fields };
}

export function podSpec(fields: Fields = {}): Fields {
  return { tolerations: [{ operator: "Exists" }], containers: [container("app")], ...fields };
}

/** Scheduled and made Ready like any other. */
function pod(name: string, spec: Fields = {}, metadata: Fields = {}): Manifest {
  return { metadata: { name, ...metadata }, spec: podSpec(spec) };
}

export function pendingPod(name: string, spec: Fields = {}, metadata: Fields = {}): Manifest {
  return pod(name, { schedulerName: unscheduled, ...spec }, metadata);
}

/** Bound to a node that does not exist, so that no kubelet ends it. */
export function boundPod(name: string, spec: Fields = {}, metadata: Fields = {}): Manifest {
  return pod(name, { nodeName: "no-such-node", ...spec }, metadata);
}

export function replicaSet(name: string, spec: Fields = {}, template: Fields = {}): Manifest {
  const labels = { app: name };
  return {
    metadata: { name, labels },
    spec: {
      replicas: 0,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: podSpec(template) },
      ...spec,
    },
  };
}

/** The kinds have the same fields where the suite looks. */
export const appsDeployment = replicaSet;

export function service(name: string, spec: Fields = {}): Manifest {
  return { metadata: { name }, spec: { selector: { app: name }, ports: [{ port: 80 }], ...spec } };
}

export function disruptionBudget(name: string, spec: Fields = {}): Manifest {
  return { metadata: { name }, spec: { selector: { matchLabels: { app: name } }, ...spec } };
}

export function lease(name: string, spec: Fields = {}): Manifest {
  return { metadata: { name }, spec: { holderIdentity: "somebody", leaseDurationSeconds: 15, ...spec } };
}

function clusterKind(apiVersion: string, kind: string, plural: string): Kind {
  const [version = "", group = ""] = apiVersion.split("/").reverse();
  return { group, version, kind, plural, namespaced: false };
}

function namespacedKind(apiVersion: string, kind: string, plural: string): Kind {
  return { ...clusterKind(apiVersion, kind, plural), namespaced: true };
}
