// The Kubernetes resources that krane reads or writes, with their API paths. Types come from kubernetes-types, which has no
// code. Another resource, such as a CRD, is one more constant: nothing else in the client knows them.
import type { CustomResourceDefinition } from "kubernetes-types/apiextensions/v1.js";
import type { Deployment, ReplicaSet } from "kubernetes-types/apps/v1.js";
import type { TokenRequest, TokenReview } from "kubernetes-types/authentication/v1.js";
import type { SelfSubjectAccessReview, SubjectAccessReview } from "kubernetes-types/authorization/v1.js";
import type { Lease } from "kubernetes-types/coordination/v1.js";
import type {
  ConfigMap,
  Event,
  Namespace,
  Node,
  Pod,
  Secret,
  Service,
  ServiceAccount,
} from "kubernetes-types/core/v1.js";
import type { RuntimeClass } from "kubernetes-types/node/v1.js";
import type { Eviction, PodDisruptionBudget } from "kubernetes-types/policy/v1.js";
import type { KubeObject, ResourceKind } from "./types.ts";

/** A kind whose fields krane builds and reads itself, without a published type. */
export interface CustomObject extends KubeObject {
  readonly spec?: unknown;
  readonly status?: unknown;
}

export const namespaces = clusterKind<Namespace>("v1", "Namespace", "namespaces");
export const nodes = clusterKind<Node>("v1", "Node", "nodes");
export const pods = namespacedKind<Pod>("v1", "Pod", "pods");
export const services = namespacedKind<Service>("v1", "Service", "services");
export const secrets = namespacedKind<Secret>("v1", "Secret", "secrets");
export const configMaps = namespacedKind<ConfigMap>("v1", "ConfigMap", "configmaps");
export const serviceAccounts = namespacedKind<ServiceAccount>("v1", "ServiceAccount", "serviceaccounts");
export const events = namespacedKind<Event>("v1", "Event", "events");
export const replicaSets = namespacedKind<ReplicaSet>("apps/v1", "ReplicaSet", "replicasets");
/** The Kubernetes kind, not krane's own deployments. */
export const appsDeployments = namespacedKind<Deployment>("apps/v1", "Deployment", "deployments");
export const leases = namespacedKind<Lease>("coordination.k8s.io/v1", "Lease", "leases");
export const runtimeClasses = clusterKind<RuntimeClass>("node.k8s.io/v1", "RuntimeClass", "runtimeclasses");
export const podDisruptionBudgets = namespacedKind<PodDisruptionBudget>(
  "policy/v1",
  "PodDisruptionBudget",
  "poddisruptionbudgets",
);
export const customResourceDefinitions = clusterKind<CustomResourceDefinition>(
  "apiextensions.k8s.io/v1",
  "CustomResourceDefinition",
  "customresourcedefinitions",
);
export const ciliumNetworkPolicies = namespacedKind<CustomObject>(
  "cilium.io/v2",
  "CiliumNetworkPolicy",
  "ciliumnetworkpolicies",
);

export const httpRoutes = namespacedKind<CustomObject>(
  "gateway.networking.k8s.io/v1",
  "HTTPRoute",
  "httproutes",
);

export const tokenReviews = clusterKind<TokenReview>(
  "authentication.k8s.io/v1",
  "TokenReview",
  "tokenreviews",
);
export const subjectAccessReviews = clusterKind<SubjectAccessReview>(
  "authorization.k8s.io/v1",
  "SubjectAccessReview",
  "subjectaccessreviews",
);
export const selfSubjectAccessReviews = clusterKind<SelfSubjectAccessReview>(
  "authorization.k8s.io/v1",
  "SelfSubjectAccessReview",
  "selfsubjectaccessreviews",
);

// An object that is created at a subresource has its own kind, but the path of another one: a TokenRequest is created
// under a service account ("token"), an Eviction under a pod.
const core = { group: "", version: "v1" };
export const tokenRequests: ResourceKind<TokenRequest> = {
  ...namespacedKind("authentication.k8s.io/v1", "TokenRequest", serviceAccounts.plural),
  servedBy: core,
};
export const evictions: ResourceKind<Eviction> = {
  ...namespacedKind("policy/v1", "Eviction", pods.plural),
  servedBy: core,
};

function clusterKind<T extends KubeObject>(
  apiVersion: string,
  kind: string,
  plural: string,
): ResourceKind<T> {
  const [version = "", group = ""] = apiVersion.split("/").reverse();
  return { group, version, kind, plural, namespaced: false };
}

function namespacedKind<T extends KubeObject>(
  apiVersion: string,
  kind: string,
  plural: string,
): ResourceKind<T> {
  return { ...clusterKind<T>(apiVersion, kind, plural), namespaced: true };
}
