// From a kind and a name to the path of a URL. Names come from outside (a control plane, the
// extras of a token), so each is checked here, before there is a URL: one that could leave its
// segment ("..", "a/b", "%2e") or that no object can have is refused and nothing is sent.
import { KubeApiError } from "./errors.ts";
import type { ObjectRef, ResourceKind } from "./types.ts";

// DNS-1123 subdomains, and on top of them upper case and ":", which RBAC names such as
// "system:node" have. No character in this set is special in a URL, so nothing is escaped.
const objectName = /^[A-Za-z0-9]([A-Za-z0-9._:-]{0,251}[A-Za-z0-9])?$/;
const dnsLabel = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
const dnsSubdomain = /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/;

/** Absent namespace: the objects of all namespaces. */
export function collectionPath(kind: ResourceKind, namespace?: string): string {
  const { group, version } = kind.servedBy ?? kind;
  const root = group === "" ? "/api" : `/apis/${checked(dnsSubdomain, "group", group)}`;
  const plural = checked(dnsSubdomain, "resource", kind.plural);
  const base = `${root}/${checked(dnsLabel, "version", version)}`;
  if (namespace === undefined) return `${base}/${plural}`;
  if (!kind.namespaced) throw invalid(`${kind.kind} is not namespaced, so "namespace" may not be given`);
  return `${base}/namespaces/${checked(dnsLabel, "namespace", namespace)}/${plural}`;
}

export function objectPath(kind: ResourceKind, ref: ObjectRef, subresource?: string): string {
  // Without this, a forgotten namespace would address another resource than the one meant.
  if (kind.namespaced && ref.namespace === undefined) throw invalid(`a ${kind.kind} needs a namespace`);
  const path = `${collectionPath(kind, ref.namespace)}/${checked(objectName, "name", ref.name)}`;
  return subresource === undefined ? path : `${path}/${checked(dnsLabel, "subresource", subresource)}`;
}

/** For messages: the kind and the name as a person would say them. */
export function describeObject(kind: ResourceKind, ref: { namespace?: string; name?: string }): string {
  const place = [ref.namespace, ref.name].filter((part) => part !== undefined && part !== "");
  return [kind.plural, place.join("/")].filter((part) => part !== "").join(" ");
}

function checked(rule: RegExp, what: string, value: string): string {
  if (rule.test(value)) return value;
  const shown = JSON.stringify(value.length > 80 ? `${value.slice(0, 80)}...` : value);
  throw invalid(`${shown} cannot be a ${what}`);
}

function invalid(message: string): KubeApiError {
  return new KubeApiError("invalid-name", message);
}
