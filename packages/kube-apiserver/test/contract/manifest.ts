// Objects as the contract suite sees them: plain JSON that may also be wrong on purpose, so
// the published types, which only know valid objects, do not fit.
import type { KubeObject, ManagedFieldsEntry, ResourceKind } from "../../src/types.ts";

export interface Manifest extends KubeObject {
  readonly [field: string]: unknown;
}

export interface Kind extends ResourceKind<Manifest> {
  /** Where the path differs from the object's own group: what is created at another kind's subresource. */
  readonly servedBy?: { readonly group: string; readonly version: string };
}

/** The value at a dotted path, undefined where any part is missing: `at(pod, "spec.containers.0.image")`. */
export function at(value: unknown, path: string): unknown {
  return path.split(".").reduce<unknown>((inner, key) => {
    return typeof inner === "object" && inner !== null ? (inner as Record<string, unknown>)[key] : undefined;
  }, value);
}

export function managedBy(object: KubeObject, manager: string): readonly ManagedFieldsEntry[] {
  return (object.metadata?.managedFields ?? []).filter((entry) => entry.manager === manager);
}

/**
 * The fields that a manager owns, as sorted paths: `spec.containers[name=app].image`. A list item
 * or a map that is owned as such, beyond what is inside it, ends in a dot or is the item itself.
 */
export function ownedFields(object: KubeObject, manager: string, operation = "Apply"): readonly string[] {
  const entries = managedBy(object, manager).filter((entry) => entry.operation === operation);
  return entries.flatMap((entry) => fieldPaths(entry.fieldsV1, "")).sort();
}

function fieldPaths(fields: unknown, prefix: string): readonly string[] {
  const entries = Object.entries((fields ?? {}) as Record<string, unknown>);
  if (entries.length === 0) return [prefix];
  return entries.flatMap(([key, inner]) => {
    if (key === ".") return [`${prefix}.`];
    return fieldPaths(inner, prefix + readElement(key, prefix === ""));
  });
}

function readElement(key: string, first: boolean): string {
  const rest = key.slice(2);
  if (key.startsWith("f:")) return first ? rest : `.${rest}`;
  if (key.startsWith("v:")) return `[${rest}]`;
  const pairs = Object.entries(JSON.parse(rest) as Record<string, unknown>);
  return `[${pairs.map(([name, value]) => `${name}=${String(value)}`).join(",")}]`;
}
