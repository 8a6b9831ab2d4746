// What every store asks of a change before it makes it, in the same words.
import { type Kind, kinds, type Spec } from "./kinds.ts";
import { StoreError } from "./store.ts";

export interface IdentityFacts {
  /** The row of this kind that has the name of the spec; undefined when none has. */
  readonly nameHolder: string | undefined;
  /** The name that the row with this id has; undefined without a row. */
  readonly nameBefore: string | undefined;
}

export function checkIdentity<K extends Kind>(
  kind: K,
  id: string,
  spec: Spec<K>,
  { nameHolder, nameBefore }: IdentityFacts,
): void {
  const { idOf, nameOf } = kinds[kind];
  const name = nameOf(spec);
  if (id === "" || spec.k8sName === "" || idOf(spec) !== id) {
    throw new StoreError("incomplete", `a ${kind} needs an id and a name that stay`);
  }
  if (nameHolder !== undefined && nameHolder !== id) {
    throw new StoreError("name_taken", `${kind} ${nameHolder} has the name ${name} already`);
  }
  if (nameBefore !== undefined && nameBefore !== name) {
    throw new StoreError("name_changed", `${kind} ${id} is called ${nameBefore}, not ${name}`);
  }
}

export function unreadable(kind: Kind, id: string): StoreError {
  return new StoreError("unreadable", `${kind} ${id} was written by a newer server and can only be replaced`);
}

export function unknownRegion(region: string): StoreError {
  return new StoreError("unknown_region", `region ${region} is not registered`);
}
