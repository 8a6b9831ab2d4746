// JSON values: types, copying, comparison, access by path.
//
// Keys are untrusted. `__proto__` as a label key must stay a label key, so every write of a computed key goes through
// setField.

export type Json = null | boolean | number | string | Json[] | JsonObject;
export interface JsonObject {
  [key: string]: Json;
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function setField(target: JsonObject, key: string, value: Json): void {
  if (key === "__proto__") {
    Object.defineProperty(target, key, { value, writable: true, enumerable: true, configurable: true });
  } else {
    target[key] = value;
  }
}

/** An own field, never an inherited one. */
export function fieldOf(target: JsonObject, key: string): Json | undefined {
  return Object.hasOwn(target, key) ? target[key] : undefined;
}

/** Follows object fields; undefined if one is missing or not an object. */
export function valueAt(root: unknown, ...path: readonly string[]): Json | undefined {
  let value: unknown = root;
  for (const key of path) {
    if (!isObject(value)) return undefined;
    value = fieldOf(value, key);
  }
  return value as Json | undefined;
}

export function stringAt(root: unknown, ...path: readonly string[]): string | undefined {
  const value = valueAt(root, ...path);
  return typeof value === "string" ? value : undefined;
}

export function listAt(root: unknown, ...path: readonly string[]): readonly Json[] {
  const value = valueAt(root, ...path);
  return Array.isArray(value) ? value : [];
}

/** Makes a deep copy. Fields set to undefined are dropped, as in JSON text. */
export function copyJson<T>(value: T): T {
  if (Array.isArray(value)) return value.map((item) => copyJson(item)) as T;
  if (!isObject(value)) return value;
  const copy: JsonObject = {};
  for (const key of Object.keys(value)) {
    const field: unknown = value[key];
    if (field !== undefined) setField(copy, key, copyJson(field as Json));
  }
  return copy as T;
}

export function equalJson(left: unknown, right: unknown): boolean {
  if (left === right) return true;
  if (Array.isArray(left)) {
    if (!Array.isArray(right) || left.length !== right.length) return false;
    return left.every((item, index) => equalJson(item, right[index]));
  }
  if (!isObject(left) || !isObject(right)) return false;
  const keys = Object.keys(left);
  if (keys.length !== Object.keys(right).length) return false;
  return keys.every((key) => Object.hasOwn(right, key) && equalJson(left[key], right[key]));
}
