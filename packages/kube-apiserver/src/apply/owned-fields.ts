// Finds the fields that an applied configuration owns: scalars, atomic values, list items, map keys, and empty or null
// values.
import { isObject, type Json } from "../json.ts";
import type { Schema } from "../schema.ts";
import { type FieldSet, FieldSetBuilder } from "./field-set.ts";
import { fieldElement, type PathElement } from "./path-element.ts";
import { childSchema, isAtomicList, isAtomicMap, itemElement, itemSchema, shapeOf } from "./typed-value.ts";

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
