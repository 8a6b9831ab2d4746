// Hostnames of routes, and the grants that decide which workspace may use one.
//
// - A route has exact names. Only a grant may be a wildcard: `*.example.com` covers every name below example.com, however
//   deep, and not example.com itself, as a Gateway matches it.
// - The most specific grant decides. So one name below a wildcard can belong to another workspace.
import { quote, type Refuse } from "./field-problem.ts";

/** An HTTPRoute cannot have more. */
const hostnamesMax = 16;

const lengthMax = 253;
const label = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

function isHostname(text: string): boolean {
  const labels = text.split(".");
  // The name of a top-level domain has a letter; without one it is an IP address.
  const isName = labels.length > 1 && !/^\d+$/.test(labels.at(-1) ?? "");
  return isName && text.length <= lengthMax && labels.every((each) => label.test(each));
}

/** Why a name cannot be one of a route; undefined if it can. */
export function findHostnameFlaw(text: string): string | undefined {
  if (isHostname(text)) return undefined;
  const rule = "must be a full DNS name in lower case, such as shop.example.com";
  const remedy = text.includes("*") ? "; only a grant may have a wildcard" : "";
  return `${rule}, but is ${quote(text)}${remedy}`;
}

/** Why a name cannot be granted; undefined if it can. */
export function findGrantFlaw(text: string): string | undefined {
  if (isHostname(text.startsWith("*.") ? text.slice(2) : text)) return undefined;
  return `must be a full DNS name in lower case, or *. before one for all names below it, but is ${quote(text)}`;
}

export function parseHostnames(path: string, names: readonly string[], refuse: Refuse): readonly string[] {
  if (names.length > hostnamesMax) {
    refuse(path, `must be at most ${hostnamesMax}, but are ${names.length}`);
    return [];
  }
  for (const [index, name] of names.entries()) {
    const flaw = names.indexOf(name) < index ? `${quote(name)} is there twice` : findHostnameFlaw(name);
    if (flaw !== undefined) refuse(`${path}[${index}]`, flaw);
  }
  return names;
}

/** The grants that cover a hostname, if they exist; the first of them decides. */
export function grantsCovering(hostname: string): readonly string[] {
  const labels = hostname.split(".");
  const wildcards = labels.slice(1).map((_, index) => `*.${labels.slice(index + 1).join(".")}`);
  return [hostname, ...wildcards];
}

/** Whether a grant covers a hostname. */
export function covers(grant: string, hostname: string): boolean {
  return grant.startsWith("*.") ? hostname.endsWith(grant.slice(1)) : grant === hostname;
}
