// Validates a custom resource against its schema, with the real server's messages.

import { duplicate, invalidValue, required, tooLong, unsupported } from "../causes.ts";
import { fieldOf, isObject, type Json } from "../json.ts";
import type { Schema } from "../schema.ts";
import type { KubeStatusCause } from "../types.ts";

export function validateCustom(schema: Schema, value: Json, path = ""): KubeStatusCause[] {
  if (value === null && schema.nullable) return [];
  const wrongType = typeCause(schema, value, path);
  if (wrongType !== undefined) return [wrongType];
  const causes = constraintCauses(schema, value, path);
  if (Array.isArray(value)) causes.push(...listCauses(schema, value, path));
  if (isObject(value)) {
    for (const name of schema.required ?? []) {
      if (fieldOf(value, name) === undefined) causes.push(required(join(path, name)));
    }
    for (const [key, child] of Object.entries(value)) {
      const inner = schema.properties?.get(key)?.schema ?? schema.additionalProperties;
      if (inner !== undefined) causes.push(...validateCustom(inner, child, join(path, key)));
    }
  }
  return causes;
}

function join(path: string, name: string): string {
  return path === "" ? name : `${path}.${name}`;
}

function typeCause(schema: Schema, value: Json, path: string): KubeStatusCause | undefined {
  const actual = jsonType(value);
  const wanted = schema.format === "int-or-string" ? "integer,string" : schema.type;
  if (wanted === undefined || wanted.split(",").includes(actual)) return undefined;
  if (wanted === "number" && actual === "integer") return undefined;
  return {
    reason: "FieldValueTypeInvalid",
    message: `Invalid value: "${actual}": ${path} in body must be of type ${wanted}: "${actual}"`,
    field: path === "" ? "<nil>" : path,
  };
}

function jsonType(value: Json): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value === "number") return Number.isInteger(value) ? "integer" : "number";
  return typeof value;
}

function constraintCauses({ constraints }: Schema, value: Json, path: string): KubeStatusCause[] {
  if (constraints === undefined) return [];
  const causes: KubeStatusCause[] = [];
  const limit = (name: string): number | undefined => {
    const bound = constraints[name];
    return typeof bound === "number" ? bound : undefined;
  };
  const refuse = (why: string): void => void causes.push(invalidValue(path, value, `${path} in body ${why}`));
  if (typeof value === "string") {
    const lengthMax = limit("maxLength");
    if (lengthMax !== undefined && [...value].length > lengthMax) causes.push(tooLong(path, lengthMax));
    if ([...value].length < (limit("minLength") ?? 0))
      refuse(`should be at least ${limit("minLength")} chars long`);
    const { pattern } = constraints;
    if (typeof pattern === "string" && !new RegExp(pattern, "u").test(value))
      refuse(`should match '${pattern}'`);
  }
  if (typeof value === "number") {
    const [minimum, maximum] = [limit("minimum"), limit("maximum")];
    const isMinOpen = constraints["exclusiveMinimum"] === true;
    const isMaxOpen = constraints["exclusiveMaximum"] === true;
    if (minimum !== undefined && (value < minimum || (isMinOpen && value === minimum))) {
      refuse(`should be greater than ${isMinOpen ? "" : "or equal to "}${minimum}`);
    }
    if (maximum !== undefined && (value > maximum || (isMaxOpen && value === maximum))) {
      refuse(`should be less than ${isMaxOpen ? "" : "or equal to "}${maximum}`);
    }
    const multiple = limit("multipleOf");
    if (multiple !== undefined && value % multiple !== 0) refuse(`should be a multiple of ${multiple}`);
  }
  const allowed = constraints["enum"];
  if (Array.isArray(allowed) && !allowed.includes(value))
    causes.push(unsupported(path, value, allowed.map(String)));
  causes.push(...sizeCauses(value, path, limit));
  return causes;
}

function sizeCauses(
  value: Json,
  path: string,
  limit: (name: string) => number | undefined,
): KubeStatusCause[] {
  const isList = Array.isArray(value);
  if (!isList && !isObject(value)) return [];
  const size = isList ? value.length : Object.keys(value).length;
  const [minName, maxName, noun] = isList
    ? ["minItems", "maxItems", "items"]
    : ["minProperties", "maxProperties", "properties"];
  const [min, max] = [limit(minName), limit(maxName)];
  const causes: KubeStatusCause[] = [];
  if (max !== undefined && size > max) {
    causes.push({
      reason: "FieldValueTooMany",
      message: `Too many: ${size}: must have at most ${max} ${noun}`,
      field: path,
    });
  }
  if (min !== undefined && size < min) {
    causes.push(invalidValue(path, size, `${path} in body should have at least ${min} ${noun}`));
  }
  return causes;
}

function listCauses(schema: Schema, list: readonly Json[], path: string): KubeStatusCause[] {
  const causes: KubeStatusCause[] = [];
  const seen = new Set<string>();
  for (const [index, item] of list.entries()) {
    if (schema.items !== undefined) causes.push(...validateCustom(schema.items, item, `${path}[${index}]`));
    if (schema.listType !== "set" && schema.listType !== "map") continue;
    const keys = schema.listType === "map" && isObject(item) ? keysOf(schema, item) : item;
    const text = JSON.stringify(keys);
    if (seen.has(text)) causes.push(duplicate(`${path}[${index}]`, keys));
    seen.add(text);
  }
  return causes;
}

function keysOf(schema: Schema, item: Json): Json {
  const names = schema.listMapKeys ?? [];
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = isObject(item) ? fieldOf(item, name) : undefined;
      return value === undefined ? [] : [[name, value]];
    }),
  );
}
