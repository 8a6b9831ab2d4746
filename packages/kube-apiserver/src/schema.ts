// What the server knows about the fields of a kind, in the form that all of its users
// (server-side apply, decoding, pruning, defaulting, strategic merge) walk.
//
// It comes from OpenAPI definitions for built-in kinds and from the CRD for custom ones;
// both are compiled to this one shape (see compile-schema.ts).
import type { Json, JsonObject } from "./json.ts";

export type SchemaType = "object" | "array" | "string" | "integer" | "number" | "boolean";

export interface Schema {
  /** Absent: any JSON value. */
  readonly type?: SchemaType;
  /** int32, int64, date-time, micro-time, byte, quantity, int-or-string. */
  readonly format?: string;
  readonly nullable?: boolean;
  /** Its Go type's name, for built-in kinds; error messages mention it. */
  readonly goName?: string;
  readonly properties?: ReadonlyMap<string, Property>;
  /** The type of values under keys that are not properties. */
  readonly additionalProperties?: Schema;
  readonly items?: Schema;
  /** Unknown fields are kept (a CRD's x-kubernetes-preserve-unknown-fields). */
  readonly preserveUnknown?: boolean;
  /** A whole Kubernetes object with apiVersion, kind and metadata of its own. */
  readonly embeddedResource?: boolean;

  /** How server-side apply owns a list: as one value, item by item, or by keys. */
  readonly listType?: "atomic" | "set" | "map";
  readonly listMapKeys?: readonly string[];
  readonly mapType?: "atomic" | "granular";

  readonly required?: readonly string[];
  /** enum, minimum, pattern and so on, in OpenAPI's own words. */
  readonly constraints?: JsonObject;
}

export interface Property {
  readonly schema: Schema;
  /** Given to custom resources where absent; for built-in kinds it only completes list keys. */
  readonly default?: Json;
  /**
   * How a built-in kind's field looks when it was not sent or is empty: left out, written
   * with its zero value, or written as null. Absent: kept exactly as sent.
   */
  readonly presence?: "omit" | "zero" | "null";
  /** Strategic merge patch. */
  readonly patchMergeKey?: string;
  readonly patchStrategy?: readonly string[];
}

/** Any JSON value, owned as a whole by server-side apply. */
export const opaque: Schema = { listType: "atomic", mapType: "atomic" };

/** The type of a field in an object schema; undefined where the schema does not allow it. */
export function fieldSchema(schema: Schema, key: string): Schema | undefined {
  const property = schema.properties?.get(key);
  if (property !== undefined) return property.schema;
  if (schema.additionalProperties !== undefined) return schema.additionalProperties;
  const open = schema.preserveUnknown || schema.properties === undefined;
  return open ? freeForm : undefined;
}

/** Objects without declared fields: maps are owned key by key, lists as a whole. */
const freeForm: Schema = { listType: "atomic", mapType: "granular" };
