// One element of a field path, in the text form of FieldsV1:
//   f:replicas               a field
//   k:{"name":"web"}         the list item with these keys
//   v:"example.com/guard"    the set item with this value
// The text is canonical (sorted keys), so equal elements are equal strings.
import { isObject, type Json, type JsonObject } from "../json.ts";

export type PathElement = string;

export function fieldElement(name: string): PathElement {
  return `f:${name}`;
}

export function valueElement(value: Json): PathElement {
  return `v:${JSON.stringify(value)}`;
}

export function keyElement(keys: JsonObject): PathElement {
  const sorted = Object.keys(keys).sort();
  return `k:{${sorted.map((key) => `${JSON.stringify(key)}:${JSON.stringify(keys[key])}`).join(",")}}`;
}

/** The field's name, or undefined if the element is a list item. */
export function fieldName(element: PathElement): string | undefined {
  return element.startsWith("f:") ? element.slice(2) : undefined;
}

/** As in conflict messages: `.spec.containers[name="web"].image`. */
export function printPath(path: readonly PathElement[]): string {
  return path.map(printElement).join("");
}

function printElement(element: PathElement): string {
  const text = element.slice(2);
  if (element.startsWith("f:")) return `.${text}`;
  if (element.startsWith("v:")) return `[=${text}]`;
  if (element.startsWith("i:")) return `[${text}]`;
  const keys: unknown = JSON.parse(text);
  if (!isObject(keys)) return `[${text}]`;
  const pairs = Object.entries(keys).map(([key, value]) => `${key}=${JSON.stringify(value)}`);
  return `[${pairs.join(",")}]`;
}

/** Rebuilds an element that a client sent, so that spacing and key order do not matter. */
export function canonicalElement(text: string): PathElement {
  if (!text.startsWith("k:") && !text.startsWith("v:")) return text;
  const value = JSON.parse(text.slice(2)) as Json;
  return text.startsWith("k:") && isObject(value) ? keyElement(value) : valueElement(value);
}
