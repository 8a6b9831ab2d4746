// The schema of a kind's fields, for server-side apply, decoding, pruning, defaulting and strategic merge. It is compiled
// from OpenAPI definitions for built-in kinds and from the CRD for custom ones (see compile-schema.ts).
import type { Json, JsonObject } from "./json.ts";

export type SchemaType = "object" | "array" | "string" | "integer" | "number" | "boolean";

export interface Schema {
  /** Absent: any JSON value. */
  readonly type?: SchemaType;
  /** int32, int64, date-time, micro-time, byte, quantity, int-or-string. */
  readonly format?: string;
  readonly nullable?: boolean;
  /** The name of its Go type, for built-in kinds; used in error messages. */
  readonly goName?: string;
  readonly properties?: ReadonlyMap<string, Property>;
  /** The type of values under keys that are not properties. */
  readonly additionalProperties?: Schema;
  readonly items?: Schema;
  /** Unknown fields are kept (a CRD's x-kubernetes-preserve-unknown-fields). */
  readonly preserveUnknown?: boolean;
  /** A whole Kubernetes object with its own apiVersion, kind and metadata. */
  readonly embeddedResource?: boolean;

  /** How server-side apply owns a list: as one value, item by item, or by keys. */
  readonly listType?: "atomic" | "set" | "map";
  readonly listMapKeys?: readonly string[];
  readonly mapType?: "atomic" | "granular";

  readonly required?: readonly string[];
  /** enum, minimum, pattern and so on, as in OpenAPI. */
  readonly constraints?: JsonObject;
}

export interface Property {
  readonly schema: Schema;
  /** Default of an absent field in custom resources; for built-in kinds it only completes list keys. */
  readonly default?: Json;
  /**
   * How an absent or empty field of a built-in kind is written: omitted, with its zero value, or as null. Absent: kept as
   * sent.
   */
  readonly presence?: "omit" | "zero" | "null";
  /** For strategic merge patches. */
  readonly patchMergeKey?: string;
  readonly patchStrategy?: readonly string[];
}

/** Any JSON value, owned as a whole by server-side apply. */
export const opaque: Schema = { listType: "atomic", mapType: "atomic" };

/** The schema of a field; undefined if the object schema does not allow it. */
export function fieldSchema(schema: Schema, key: string): Schema | undefined {
  const property = schema.properties?.get(key);
  if (property !== undefined) return property.schema;
  if (schema.additionalProperties !== undefined) return schema.additionalProperties;
  const open = schema.preserveUnknown || schema.properties === undefined;
  return open ? freeForm : undefined;
}

/** Objects without declared fields: maps are owned key by key, lists as a whole. */
const freeForm: Schema = { listType: "atomic", mapType: "granular" };
