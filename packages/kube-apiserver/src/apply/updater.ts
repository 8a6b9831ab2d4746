// The core of server-side apply: given the live object, its owners and one operation, computes the new owners, the
// conflicts and the resulting object.
//
// An applier owns exactly the fields of its last configuration. An updater owns the fields that it changed. A changed
// field loses its previous owners. A field that its applier no longer sends, and that has no other owner, is removed.
import { isObject, type Json, type JsonObject, setField } from "../json.ts";
import { fieldSchema, type Schema } from "../schema.ts";
import { type Comparison, compareValues, withoutFields } from "./comparison.ts";
import { FieldSet, FieldSetBuilder } from "./field-set.ts";
import { compareText, type Owners, type Ownership } from "./managed-fields.ts";
import { mergeValues } from "./merge.ts";
import { fieldElement, fieldName, type PathElement } from "./path-element.ts";
import { childSchema, isAtomicList, isAtomicMap, itemElement, itemSchema, shapeOf } from "./typed-value.ts";

export interface FieldConflict {
  readonly owner: Ownership;
  readonly path: readonly PathElement[];
}

export interface Operation {
  readonly schema: Schema;
  readonly owners: Owners;
  /** The owner id of the operation. */
  readonly id: string;
  readonly as: Omit<Ownership, "fields" | "time">;
  /** Fields that this endpoint never changes. */
  readonly ignored: FieldSet;
}

export type ApplyOutcome =
  | { readonly kind: "applied"; readonly object: Json; readonly owners: Owners; readonly changed: boolean }
  | { readonly kind: "conflict"; readonly conflicts: readonly FieldConflict[] };

/** The owners after an update, which owns the differences between the live and the next object. */
export function updateOwners(operation: Operation, live: Json, next: Json): Owners {
  const comparison = withoutFields(compareValues(operation.schema, live, next), operation.ignored);
  const owners = releaseFields(operation, comparison);
  const held = owners.get(operation.id)?.fields ?? FieldSet.empty;
  const fields = held
    .difference(comparison.removed)
    .union(comparison.modified)
    .union(comparison.added)
    .recursiveDifference(operation.ignored);
  return withOwnership(owners, operation, fields);
}

export function applyConfiguration(
  operation: Operation,
  live: Json,
  config: Json,
  force: boolean,
): ApplyOutcome {
  const { schema, owners, id, ignored } = operation;
  const sent = ownedFields(schema, config).recursiveDifference(ignored);
  const merged = mergeValues(schema, live, config) ?? {};
  const claimed = withOwnership(owners, operation, sent);
  const next = prune(schema, merged, claimed, owners.get(id)?.fields, sent);
  const differences = compareValues(schema, live, next);
  const comparison = withoutFields(differences, ignored);
  const conflicts = findConflicts({ ...operation, owners: claimed }, comparison);
  if (conflicts.length > 0 && !force) return { kind: "conflict", conflicts };
  const remaining = releaseFields({ ...operation, owners: claimed }, comparison);
  const changed = Object.values(differences).some((fields) => !fields.isEmpty);
  return { kind: "applied", object: next, owners: remaining, changed };
}

function findConflicts({ owners, id }: Operation, comparison: Comparison): FieldConflict[] {
  const touched = comparison.modified.union(comparison.added);
  return [...owners]
    .filter(([ownerId]) => ownerId !== id)
    .sort(([left], [right]) => compareText(left, right))
    .flatMap(([, owner]) => [...owner.fields.intersection(touched).paths()].map((path) => ({ owner, path })));
}

/** Takes the fields that the operation changed or removed from all other owners. */
function releaseFields({ owners, id }: Operation, comparison: Comparison): Owners {
  const touched = comparison.modified.union(comparison.added);
  const remaining = new Map<string, Ownership>();
  for (const [ownerId, owner] of owners) {
    const fields =
      ownerId === id
        ? owner.fields
        : owner.fields.difference(owner.fields.intersection(touched)).difference(comparison.removed);
    if (!fields.isEmpty) remaining.set(ownerId, { ...owner, fields });
  }
  return remaining;
}

function withOwnership(owners: Owners, { id, as }: Operation, fields: FieldSet): Owners {
  const changed = new Map(owners);
  if (fields.isEmpty) changed.delete(id);
  else changed.set(id, { ...as, time: owners.get(id)?.time, fields });
  return changed;
}

/**
 * Removes the fields that the applier owned before, except those that have an owner now, and those that it never owned
 * but that would disappear with an emptied parent.
 */
function prune(
  schema: Schema,
  merged: Json,
  owners: Owners,
  last: FieldSet | undefined,
  sent: FieldSet,
): Json {
  if (last === undefined || last.isEmpty) return merged;
  // The usual case: all previously owned fields are still owned, so nothing is removed.
  if (last.difference(sent).isEmpty) return merged;
  const lastNamed = withNamedFields(schema, last);
  let owned = FieldSet.empty;
  for (const { fields } of owners.values()) owned = owned.union(fields);

  const mergedSet = withNamedFields(schema, ownedFields(schema, merged));
  const stripped = removeFields(schema, merged, lastNamed) ?? {};
  const strippedSet = withNamedFields(schema, ownedFields(schema, stripped));
  const unowned = mergedSet.difference(strippedSet.union(withNamedFields(schema, owned)));
  const withOwned = removeFields(schema, merged, unowned) ?? {};
  const withOwnedSet = withNamedFields(schema, ownedFields(schema, withOwned));
  const dropped = mergedSet.difference(withOwnedSet).intersection(lastNamed);
  return removeFields(schema, merged, dropped) ?? {};
}

/**
 * Removes fields by their paths. The result is null if nothing is left, also for nested values: the key of an emptied map
 * stays, so that the owner of the map itself keeps it.
 */
function removeFields(schema: Schema, value: Json, fields: FieldSet): Json {
  const shape = shapeOf(schema, value);
  if (shape === "map" && isObject(value)) return removeFromMap(schema, value, fields);
  if (shape === "list" && Array.isArray(value)) return removeFromList(schema, value, fields);
  return value;
}

function removeFromMap(schema: Schema, value: JsonObject, fields: FieldSet): Json {
  if (isAtomicMap(schema)) return null;
  const kept: JsonObject = {};
  for (const [key, child] of Object.entries(value)) {
    const element = fieldElement(key);
    if (fields.members.has(element)) continue;
    const below = fields.below(element);
    const rest = below.isEmpty ? child : removeFields(childSchema(schema, key), child, below);
    setField(kept, key, rest);
  }
  return Object.keys(kept).length > 0 ? kept : null;
}

function removeFromList(schema: Schema, value: readonly Json[], fields: FieldSet): Json {
  if (isAtomicList(schema)) return null;
  const kept: Json[] = [];
  for (const item of value) {
    const element = itemElement(schema, item);
    if (fields.members.has(element)) continue;
    const below = fields.below(element);
    kept.push(below.isEmpty ? item : removeFields(itemSchema(schema), item, below));
  }
  return kept.length > 0 ? kept : null;
}

/**
 * Adds the struct fields on the way to a path as members. A struct field has no owner while it has content, so without
 * this its removal would go unnoticed.
 */
function withNamedFields(schema: Schema, set: FieldSet): FieldSet {
  const members = new Set(set.members);
  const children = new Map<PathElement, FieldSet>();
  for (const [element, below] of set.children) {
    const name = fieldName(element);
    if (name !== undefined && schema.properties?.has(name)) members.add(element);
    const inner = name === undefined ? itemSchema(schema) : fieldSchema(schema, name);
    children.set(element, withNamedFields(inner ?? {}, below));
  }
  return new FieldSet(members, children);
}

// Finds the fields that an applied configuration owns: scalars, atomic values, list items, map keys, and empty or null
// values.

export function ownedFields(schema: Schema, value: Json): FieldSet {
  const found = new FieldSetBuilder();
  collect(schema, value, [], found);
  return found.build();
}

function collect(schema: Schema, value: Json, path: readonly PathElement[], found: FieldSetBuilder): void {
  const shape = shapeOf(schema, value);
  if (shape === "scalar") found.insert(path);
  else if (shape === "map") collectMap(schema, value, path, found);
  else collectList(schema, value, path, found);
}

function collectMap(schema: Schema, value: Json, path: readonly PathElement[], found: FieldSetBuilder): void {
  if (isAtomicMap(schema)) {
    found.insert(path);
    return;
  }
  if (!isObject(value)) return;
  for (const [key, child] of Object.entries(value)) {
    const childPath = [...path, fieldElement(key)];
    collect(childSchema(schema, key), child, childPath, found);
    const isEmpty = child === null || (isObject(child) && Object.keys(child).length === 0);
    // Map keys are owned themselves; struct fields always exist.
    if (isEmpty || !schema.properties?.has(key)) found.insert(childPath);
  }
}

function collectList(
  schema: Schema,
  value: Json,
  path: readonly PathElement[],
  found: FieldSetBuilder,
): void {
  if (isAtomicList(schema)) {
    found.insert(path);
    return;
  }
  if (!Array.isArray(value)) return;
  const counts = new Map<PathElement, number>();
  const elements = value.map((item) => itemElement(schema, item));
  for (const element of elements) counts.set(element, (counts.get(element) ?? 0) + 1);
  for (const [index, element] of elements.entries()) {
    const itemPath = [...path, element];
    // Items with the same keys cannot be told apart, so they are owned as a whole.
    if (counts.get(element) === 1) collect(itemSchema(schema), value[index] ?? null, itemPath, found);
    found.insert(itemPath);
  }
}
