// Validates the names of objects and namespaces, and ids. They come from the control plane and end up in URLs, selectors
// and labels, so they are checked first: the API server would reject most of them too, but with a less helpful 404 or 422.

import { sentinelNamespace } from "./labels.ts";

const dns1035Label = /^[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
const dns1123Label = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
const labelValue = /^[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$/;

/** The strictest of the name rules, which the control plane guarantees: it starts with a letter. */
export function isDns1035Label(text: string): boolean {
  return dns1035Label.test(text);
}

export function isDns1123Label(text: string): boolean {
  return dns1123Label.test(text);
}

/** Ids are opaque, but become label values. The empty value is valid and means no id. */
export function isLabelValue(text: string): boolean {
  return text === "" || labelValue.test(text);
}

/** The suffix of the gossip objects of sentinels; no other name in their namespace may end with it. */
export const gossipSuffix = "-gossip-lan";

/** The prefix of the ingress policies that krane makes, one per environment; 16 hexadecimal digits follow. */
export const ingressPolicyPrefix = "allow-sentinel-ingress-";
/** The prefix of the policies that krane makes for routes; the name of the route follows. */
export const routePolicyPrefix = "allow-route-ingress-";
/** The suffix of the Service of the release that the requests of a route move to, after the name of the route. */
export const nextServiceSuffix = "-next";
const ingressPolicyName = new RegExp(`^${ingressPolicyPrefix}[0-9a-f]{16}$`);

/**
 * Whether krane makes a policy of this name by itself. Two controllers that apply it with the same field manager would see no
 * conflict, and would overwrite each other forever.
 */
export function isOwnPolicyName(namespace: string, name: string): boolean {
  if (namespace === sentinelNamespace) return name.endsWith(gossipSuffix);
  return ingressPolicyName.test(name) || name.startsWith(routePolicyPrefix);
}

/** The namespaces of krane itself. */
export interface OwnNamespaces {
  /** The one that it runs in, if known. */
  readonly ownNamespace?: string;
  /** The one that it keeps its own objects in, if it keeps any. */
  readonly stateNamespace?: string;
  /** Those of the Gateway and its proxies, whose pods the policies of routes admit. */
  readonly gatewayNamespaces?: readonly string[];
}

/** Why krane manages nothing in this namespace; undefined if it may. */
export function refusedNamespace(namespace: string, own: OwnNamespaces): string | undefined {
  if (namespace === "default" || namespace.startsWith("kube-")) return "is reserved for Kubernetes";
  if (namespace === own.ownNamespace) return "is the namespace that krane itself runs in";
  if (namespace === own.stateNamespace) return "is the namespace that krane keeps its own objects in";
  return undefined;
}

/**
 * Why tenants' code may not run in this namespace; undefined if it may. Ingress policies treat every pod in the namespace
 * of the sentinels as a sentinel, and every pod beside the Gateway as its proxy.
 */
export function refusedWorkloadNamespace(namespace: string, own: OwnNamespaces): string | undefined {
  if (namespace === sentinelNamespace) return "is the namespace of the sentinels";
  if (own.gatewayNamespaces?.includes(namespace)) return "is a namespace of the Gateway";
  return refusedNamespace(namespace, own);
}
