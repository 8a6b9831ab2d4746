// Builds the URL path for a kind and a name. Names come from outside (the control plane, the extras of a token), so each
// is validated here: a name that could leave its segment ("..", "a/b", "%2e"), or that no object can have, is rejected
// before anything is sent.
import { KubeApiError } from "./errors.ts";
import type { ObjectRef, ResourceKind } from "./types.ts";

// DNS-1123 subdomains, plus upper case and ":", which RBAC names such as "system:node" have. No character in this set is
// special in a URL, so nothing is escaped.
const objectName = /^[A-Za-z0-9]([A-Za-z0-9._:-]{0,251}[A-Za-z0-9])?$/;
const dnsLabel = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
const dnsSubdomain = /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/;

/** Without a namespace: the objects of all namespaces. */
export function collectionPath(kind: ResourceKind, namespace?: string): string {
  const { group, version } = kind.servedBy ?? kind;
  const root = group === "" ? "/api" : `/apis/${checked(dnsSubdomain, "group", group)}`;
  const plural = checked(dnsSubdomain, "resource", kind.plural);
  const base = `${root}/${checked(dnsLabel, "version", version)}`;
  if (namespace === undefined) return `${base}/${plural}`;
  if (!kind.namespaced) throw invalid(`${kind.kind} is cluster-scoped and cannot have a namespace`);
  return `${base}/namespaces/${checked(dnsLabel, "namespace", namespace)}/${plural}`;
}

export function objectPath(kind: ResourceKind, ref: ObjectRef, subresource?: string): string {
  // Without this check, a forgotten namespace would address a different resource.
  if (kind.namespaced && ref.namespace === undefined) throw invalid(`a ${kind.kind} needs a namespace`);
  const path = `${collectionPath(kind, ref.namespace)}/${checked(objectName, "name", ref.name)}`;
  return subresource === undefined ? path : `${path}/${checked(dnsLabel, "subresource", subresource)}`;
}

/** The resource and the name, for messages. */
export function describeObject(kind: ResourceKind, ref: { namespace?: string; name?: string }): string {
  const place = [ref.namespace, ref.name].filter((part) => part !== undefined && part !== "");
  return [kind.plural, place.join("/")].filter((part) => part !== "").join(" ");
}

function checked(rule: RegExp, what: string, value: string): string {
  if (rule.test(value)) return value;
  const shown = JSON.stringify(value.length > 80 ? `${value.slice(0, 80)}...` : value);
  throw invalid(`invalid ${what} ${shown}`);
}

function invalid(message: string): KubeApiError {
  return new KubeApiError("invalid-name", message);
}
