// The smallest valid objects of each kind, for cases to add their one point to.
import * as kinds from "../../src/kube/resources.ts";
import type { ResourceKind } from "../../src/kube/types.ts";
import type { Kind, Manifest } from "./manifest.ts";

export const namespaces = loose(kinds.namespaces);
export const nodes = loose(kinds.nodes);
export const pods = loose(kinds.pods);
export const services = loose(kinds.services);
export const secrets = loose(kinds.secrets);
export const serviceAccounts = loose(kinds.serviceAccounts);
export const events = loose(kinds.events);
export const replicaSets = loose(kinds.replicaSets);
export const appsDeployments = loose(kinds.appsDeployments);
export const podDisruptionBudgets = loose(kinds.podDisruptionBudgets);
export const leases = loose(kinds.leases);
export const runtimeClasses = loose(kinds.runtimeClasses);
export const customResourceDefinitions = loose(kinds.customResourceDefinitions);
export const ciliumNetworkPolicies = loose(kinds.ciliumNetworkPolicies);
export const tokenReviews = loose(kinds.tokenReviews);
export const subjectAccessReviews = loose(kinds.subjectAccessReviews);
export const selfSubjectAccessReviews = loose(kinds.selfSubjectAccessReviews);
export const tokenRequests = loose(kinds.tokenRequests);
export const evictions = loose(kinds.evictions);

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
export function pod(name: string, spec: Fields = {}, metadata: Fields = {}): Manifest {
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

function loose(kind: ResourceKind): Kind {
  const { object: _, ...place } = kind;
  return place;
}
