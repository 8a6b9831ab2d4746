// The shapes of values in server-side apply: a scalar, a map that is owned key by key, a list that is owned item by
// item, or an atomic value.
import { fieldOf, isObject, type Json, type JsonObject, setField } from "../json.ts";
import { fieldSchema, type Schema } from "../schema.ts";
import { keyElement, type PathElement, valueElement } from "./path-element.ts";

export type Shape = "scalar" | "map" | "list";

/** Without a type in the schema, the value decides; null has the schema's shape. */
export function shapeOf(schema: Schema, value: Json | undefined): Shape {
  if (schema.type === "object") return "map";
  if (schema.type === "array") return "list";
  if (schema.type !== undefined || schema.format !== undefined) return "scalar";
  if (Array.isArray(value)) return "list";
  return isObject(value) || value === null || value === undefined ? "map" : "scalar";
}

export function isAtomicMap(schema: Schema): boolean {
  return schema.mapType === "atomic";
}

export function isAtomicList(schema: Schema): boolean {
  return schema.listType !== "set" && schema.listType !== "map";
}

/** The schema of a field or map value; unknown fields of a closed object have no type. */
export function childSchema(schema: Schema, key: string): Schema {
  return fieldSchema(schema, key) ?? {};
}

export function itemSchema(schema: Schema): Schema {
  return schema.items ?? {};
}

export class ListItemError extends Error {
  override readonly name = "ListItemError";
}

/** The path element of a list item: by its value (sets) or by its keys (lists of type map). */
export function itemElement(schema: Schema, item: Json): PathElement {
  if (schema.listType === "set") {
    if (isObject(item))
      throw new ListItemError("associative list without keys has an element that's a map type");
    if (Array.isArray(item))
      throw new ListItemError("not supported: associative list with lists as elements");
    if (item === null) {
      throw new ListItemError("associative list without keys has an element that's an explicit null");
    }
    return valueElement(item);
  }
  if (item === null) throw new ListItemError("associative list with keys may not have a null element");
  if (!isObject(item)) throw new ListItemError("associative list with keys may not have non-map elements");
  return keyElement(keysOf(schema, item));
}

function keysOf(schema: Schema, item: JsonObject): JsonObject {
  const names = schema.listMapKeys ?? [];
  const keys: JsonObject = {};
  for (const name of names) {
    const value = fieldOf(item, name) ?? schema.items?.properties?.get(name)?.default;
    if (value !== undefined) setField(keys, name, value);
  }
  if (names.length > 0 && Object.keys(keys).length === 0) {
    const quoted = names.map((name) => JSON.stringify(name)).join(" ");
    throw new ListItemError(
      `associative list with keys has an element that omits all key fields [${quoted}] (and doesn't have default values for any key fields)`,
    );
  }
  return keys;
}
