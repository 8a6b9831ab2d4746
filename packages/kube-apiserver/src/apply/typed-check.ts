// Checks an applied configuration against its schema. The real server rejects a mismatch with a plain 500 and these
// messages, before it validates the kind.
import { isObject, type Json } from "../json.ts";
import { fieldSchema, type Schema } from "../schema.ts";
import { fieldElement, type PathElement, printPath } from "./path-element.ts";
import { isAtomicList, itemElement, itemSchema, ListItemError, shapeOf } from "./typed-value.ts";

export function checkTyped(schema: Schema, value: Json): readonly string[] {
  return check(schema, value, []);
}

function check(schema: Schema, value: Json, path: readonly PathElement[]): string[] {
  if (value === null) return [];
  const shape = shapeOf(schema, value);
  if (shape === "map") return checkMap(schema, value, path);
  if (shape === "list") return checkList(schema, value, path);
  const wrong = scalarMisfit(schema, value);
  return wrong === undefined ? [] : [`${printPath(path)}: ${wrong}`];
}

function scalarMisfit(schema: Schema, value: Json): string | undefined {
  const isScalar = typeof value !== "object";
  switch (schema.type) {
    case "integer":
    case "number":
      return typeof value === "number" ? undefined : `expected numeric (int or float), got ${goType(value)}`;
    case "boolean":
      return typeof value === "boolean" ? undefined : `expected boolean, got &{${goText(value)}}`;
    case "string":
      if (schema.format === undefined || schema.format === "byte") {
        if (typeof value === "string") return undefined;
        return `expected string, got &value.valueUnstructured{Value:${goText(value)}}`;
      }
      break;
    default:
  }
  return isScalar ? undefined : `expected any scalar, got &{${goText(value)}}`;
}

function checkMap(schema: Schema, value: Json, path: readonly PathElement[]): string[] {
  if (!isObject(value)) return [`${printPath(path)}: expected map, got &{${goText(value)}}`];
  return Object.entries(value).flatMap(([key, child]) => {
    const place = [...path, fieldElement(key)];
    const inner = fieldSchema(schema, key);
    return inner === undefined
      ? [`${printPath(place)}: field not declared in schema`]
      : check(inner, child, place);
  });
}

function checkList(schema: Schema, value: Json, path: readonly PathElement[]): string[] {
  if (!Array.isArray(value)) return [`${printPath(path)}: expected list, got &{${goText(value)}}`];
  const seen = new Set<PathElement>();
  const found: string[] = [];
  for (const [index, item] of value.entries()) {
    let element: PathElement = `i:${index}`;
    if (!isAtomicList(schema)) {
      try {
        element = itemElement(schema, item);
      } catch (error) {
        if (!(error instanceof ListItemError)) throw error;
        return [...found, `${printPath(path)}: element ${index}: ${error.message}`];
      }
      if (seen.has(element))
        found.push(`${printPath(path)}: duplicate entries for key ${printPath([element])}`);
      seen.add(element);
    }
    found.push(...check(itemSchema(schema), item, [...path, element]));
  }
  return found;
}

// Go's names for the types of decoded JSON.
function goType(value: Json): string {
  if (typeof value === "string") return "string";
  if (typeof value === "boolean") return "bool";
  return Array.isArray(value) ? "[]interface {}" : "map[string]interface {}";
}

function goText(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(goText).join(" ")}]`;
  if (!isObject(value)) return value === null ? "<nil>" : String(value);
  const pairs = Object.keys(value).sort();
  return `map[${pairs.map((key) => `${key}:${goText(value[key] ?? null)}`).join(" ")}]`;
}
