// Decodes a custom resource: prunes unknown fields and fills in defaults. Wrong types stay, so that validation can
// report them.
import { builtinSchema } from "../builtin-schemas.ts";
import { type Decoded, decodeTyped } from "../decode.ts";
import { copyJson, fieldOf, isObject, type Json, type JsonObject, setField } from "../json.ts";
import type { Schema } from "../schema.ts";

const objectMeta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const typeFields = new Set(["apiVersion", "kind", "metadata"]);

/**
 * Nulls that the schema does not allow are dropped from what a client sends, and kept in the result of an apply, so that
 * validation rejects them.
 */
export function decodeCustom(schema: Schema, sent: JsonObject, nulls: "drop" | "keep"): Decoded {
  const unknownFields: string[] = [];
  const { apiVersion, kind, metadata, ...rest } = sent;
  const fields = prune(schema, nulls === "drop" ? withoutNulls(schema, rest) : rest, "", unknownFields);
  const filled = isObject(fields) ? fillDefaults(schema, fields) : {};
  const meta = decodeTyped(builtinSchema(objectMeta), isObject(metadata) ? metadata : {});
  unknownFields.push(...meta.unknownFields.map((field) => `metadata.${field}`));
  const object: JsonObject = { apiVersion: apiVersion ?? "", kind: kind ?? "", metadata: meta.object };
  for (const [key, value] of Object.entries(filled)) if (!typeFields.has(key)) setField(object, key, value);
  return { object, unknownFields };
}

function prune(schema: Schema, value: Json, path: string, unknown: string[]): Json {
  if (Array.isArray(value)) {
    return value.map((item, index) =>
      schema.items ? prune(schema.items, item, `${path}[${index}]`, unknown) : item,
    );
  }
  if (!isObject(value)) return value;
  const kept: JsonObject = {};
  for (const [key, child] of Object.entries(value)) {
    const place = path === "" ? key : `${path}.${key}`;
    const property = schema.properties?.get(key)?.schema ?? schema.additionalProperties;
    if (property !== undefined) {
      setField(kept, key, prune(property, child, place, unknown));
    } else if (schema.preserveUnknown || (schema.embeddedResource && typeFields.has(key))) {
      setField(kept, key, child);
    } else unknown.push(place);
  }
  return kept;
}

function withoutNulls(schema: Schema | undefined, value: Json): Json {
  if (Array.isArray(value)) return value.map((item) => withoutNulls(schema?.items, item));
  if (!isObject(value)) return value;
  const kept: JsonObject = {};
  for (const [key, child] of Object.entries(value)) {
    const inner = schema?.properties?.get(key)?.schema ?? schema?.additionalProperties;
    const isDropped = child === null && inner !== undefined && !inner.nullable;
    if (!isDropped) setField(kept, key, withoutNulls(inner, child));
  }
  return kept;
}

function fillDefaults(schema: Schema, value: JsonObject): JsonObject {
  const filled: JsonObject = { ...value };
  for (const [name, property] of schema.properties ?? []) {
    const present = fieldOf(filled, name);
    const isAbsent = present === undefined || (present === null && !property.schema.nullable);
    if (isAbsent && property.default !== undefined) {
      setField(filled, name, copyJson(property.default));
    }
  }
  for (const [key, child] of Object.entries(filled)) {
    const inner = schema.properties?.get(key)?.schema ?? schema.additionalProperties;
    if (inner !== undefined) setField(filled, key, defaultsIn(inner, child));
  }
  return filled;
}

function defaultsIn(schema: Schema, value: Json): Json {
  if (Array.isArray(value)) {
    const { items } = schema;
    return items === undefined ? value : value.map((item) => defaultsIn(items, item));
  }
  return isObject(value) ? fillDefaults(schema, value) : value;
}
