// What may name an object, a namespace or an owner. Names come from the control plane and end up
// in URLs, selectors and labels, so each is checked before anything is built from it: the API
// server would refuse most of these too, but with a 404 or a 422 that says less.

import type { Namespace } from "kubernetes-types/core/v1.js";
import { labelKeys, managedBy, sentinelNamespace } from "./labels.ts";

const dns1035Label = /^[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
const dns1123Label = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
const labelValue = /^[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$/;

/** The strictest of the name rules, and what the control plane promises: a letter comes first. */
export function isDns1035Label(text: string): boolean {
  return dns1035Label.test(text);
}

export function isDns1123Label(text: string): boolean {
  return dns1123Label.test(text);
}

/** Ids are opaque, but each becomes the value of a label. The empty value is legal there and means no id. */
export function isLabelValue(text: string): boolean {
  return text === "" || labelValue.test(text);
}

/** Ends the names of the gossip objects of sentinels; nothing else in their namespace may end so. */
export const gossipSuffix = "-gossip-lan";

/** Why krane manages nothing in this namespace, or undefined where it may. */
export function refusedNamespace(namespace: string, ownNamespace: string | undefined): string | undefined {
  if (namespace === "default" || namespace.startsWith("kube-")) return "is a namespace of Kubernetes itself";
  if (namespace === ownNamespace) return "is the namespace that krane itself runs in";
  return undefined;
}

/**
 * Why code of tenants may not run in this namespace. Whoever runs among the sentinels is a sentinel
 * in the eyes of every ingress policy.
 */
export function refusedWorkloadNamespace(
  namespace: string,
  ownNamespace: string | undefined,
): string | undefined {
  if (namespace === sentinelNamespace) return "is the namespace of the sentinels";
  return refusedNamespace(namespace, ownNamespace);
}

// The namespace of a workspace. It is created where it is missing and used as it is where it exists:
// never patched, never deleted, because others may keep things there too.

// Only the label that says who made it. Several controllers create namespaces, and whoever comes
// first must not decide what the others find.
export function desiredNamespace(name: string): Namespace {
  return {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name, labels: { [labelKeys.managedBy]: managedBy } },
  };
}
