// Takes fields out of an object, by their paths.
import { isObject, type Json, type JsonObject, setField } from "../json.ts";
import { fieldSchema, type Schema } from "../schema.ts";
import { FieldSet } from "./field-set.ts";
import { fieldElement, fieldName, type PathElement } from "./path-element.ts";
import { childSchema, isAtomicList, isAtomicMap, itemElement, itemSchema, shapeOf } from "./typed-value.ts";

/**
 * Null where nothing is left, also inside: an emptied map is still there, so whoever owns
 * the map itself goes on owning it.
 */
export function removeFields(schema: Schema, value: Json, fields: FieldSet): Json {
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
 * Adds the declared fields that lead to a path as members of their own. A struct field has
 * no owner while it has content, so without this nobody could be found to have dropped it.
 */
export function withNamedFields(schema: Schema, set: FieldSet): FieldSet {
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
