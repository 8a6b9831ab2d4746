// How server-side apply looks at a value: as a scalar, as a map that is owned key by key,
// as a list that is owned item by item, or as one atomic whole.
import { fieldOf, isObject, type Json, type JsonObject, setField } from "../json.ts";
import { fieldSchema, type Schema } from "../schema.ts";
import { keyElement, type PathElement, valueElement } from "./path-element.ts";

export type Shape = "scalar" | "map" | "list";

/** A value may be anything where the schema does not say; null takes the schema's own shape. */
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

/** The schema of a map's value; unknown fields of a closed object are taken as they are. */
export function childSchema(schema: Schema, key: string): Schema {
  return fieldSchema(schema, key) ?? {};
}

export function itemSchema(schema: Schema): Schema {
  return schema.items ?? {};
}

export class ListItemError extends Error {
  override readonly name = "ListItemError";
}

/** Names a list item by its value (sets) or by its key fields (lists of type map). */
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
