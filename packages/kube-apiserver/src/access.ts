// Authorizes requests by a short table of rules. Members of system:masters may do everything.
import type { User } from "./resource.ts";
import { StatusError } from "./status-error.ts";

export interface AccessRule {
  /** A user name or a group; one of the two. */
  readonly user?: string;
  readonly group?: string;
  /** Each list may contain "*". */
  readonly verbs: readonly string[];
  readonly apiGroups: readonly string[];
  /** "pods", "pods/eviction". */
  readonly resources: readonly string[];
  /** Absent: all namespaces, and cluster-wide. */
  readonly namespaces?: readonly string[];
}

export interface AccessQuestion {
  readonly user: User;
  readonly verb: string;
  readonly group: string;
  /** With its subresource, "pods/status". */
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
}

export function isAllowed(rules: readonly AccessRule[], question: AccessQuestion): boolean {
  const { user, verb, group, resource, namespace } = question;
  if (user.groups.includes("system:masters")) return true;
  return rules.some((rule) => {
    const isSubject =
      rule.user === user.username || (rule.group !== undefined && user.groups.includes(rule.group));
    if (!isSubject) return false;
    if (rule.namespaces !== undefined && !includes(rule.namespaces, namespace)) return false;
    return (
      includes(rule.verbs, verb) && includes(rule.apiGroups, group) && includes(rule.resources, resource)
    );
  });
}

function includes(list: readonly string[], item: string): boolean {
  return list.includes("*") || list.includes(item);
}

export function accessDenied(question: AccessQuestion): StatusError {
  const { user, verb, group, resource, namespace, name } = question;
  const place = namespace === "" ? "at the cluster scope" : `in the namespace "${namespace}"`;
  const [plural = ""] = resource.split("/");
  const qualified = group === "" ? plural : `${plural}.${group}`;
  const subject = name === "" ? qualified : `${qualified} "${name}"`;
  const why = `User "${user.username}" cannot ${verb} resource "${resource}" in API group "${group}" ${place}`;
  return new StatusError(403, "Forbidden", `${subject} is forbidden: ${why}`, {
    ...(name === "" ? {} : { name }),
    ...(group === "" ? {} : { group }),
    kind: plural,
  });
}
