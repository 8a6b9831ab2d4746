// Decodes a built-in kind as the real server's Go types do: reports and drops unknown fields, rejects wrong types, and
// brings quantities and times into canonical form. Empty values are omitted or written as zero, as each field's type
// defines it.
//
// Decoding is idempotent. Server-side apply relies on that, because it compares stored objects with decoded ones.
import { isObject, type Json, type JsonObject, setField } from "./json.ts";
import { formatQuantity, parseQuantity } from "./quantities.ts";
import type { Property, Schema } from "./schema.ts";
import { formatMicroTimestamp, formatTimestamp, parseTimestamp } from "./timestamps.ts";

export class DecodeError extends Error {
  override readonly name = "DecodeError";
}

export interface Decoded {
  readonly object: JsonObject;
  /** As in `unknown field "spec.containers[0].foo"`. */
  readonly unknownFields: readonly string[];
}

export function decodeTyped(schema: Schema, value: JsonObject): Decoded {
  const decoder = new Decoder();
  return { object: decoder.object(schema, value, []), unknownFields: decoder.unknownFields };
}

interface Place {
  readonly struct: string;
  readonly path: readonly (string | number)[];
}

class Decoder {
  readonly unknownFields: string[] = [];

  object(schema: Schema, value: JsonObject, path: readonly (string | number)[]): JsonObject {
    const decoded: JsonObject = {};
    const struct = schema.goName ?? "";
    for (const [name, property] of schema.properties ?? []) {
      const sent = Object.hasOwn(value, name) ? value[name] : undefined;
      const field = this.field(property, sent, { struct, path: [...path, name] });
      if (field !== undefined) setField(decoded, name, field);
    }
    for (const key of Object.keys(value)) {
      if (!schema.properties?.has(key)) this.unknownFields.push(dotted([...path, key]));
    }
    return decoded;
  }

  private field(property: Property, sent: Json | undefined, place: Place): Json | undefined {
    const { schema, presence } = property;
    if (sent === undefined || sent === null) {
      if (presence === "zero") return this.zero(schema, place);
      return presence === "null" ? null : undefined;
    }
    const decoded = this.value(schema, sent, place);
    return presence === "omit" && isZero(decoded) ? undefined : decoded;
  }

  /** Go's zero value of a field. */
  private zero(schema: Schema, place: Place): Json {
    if (schema.format === "quantity") return "0";
    if (schema.format === "int-or-string") return 0;
    if (schema.format === "date-time" || schema.format === "micro-time") return null;
    switch (schema.type) {
      case "string":
        return "";
      case "integer":
      case "number":
        return 0;
      case "boolean":
        return false;
      case "object":
        return schema.properties === undefined ? {} : this.object(schema, {}, place.path);
      default:
        return null;
    }
  }

  private value(schema: Schema, sent: Json, place: Place): Json {
    if (schema.type === "object") return this.map(schema, sent, place);
    if (schema.type === "array") {
      if (!Array.isArray(sent)) throw misfit(sent, place, `[]${goType(schema.items ?? {})}`);
      return sent.map((item, index) => this.item(schema.items ?? {}, item, place, index));
    }
    return scalar(schema, sent, place);
  }

  private item(schema: Schema, sent: Json, place: Place, index: string | number): Json {
    const inner = { ...place, path: [...place.path.slice(0, -1), `${place.path.at(-1)}[${index}]`] };
    return sent === null ? this.zero(schema, inner) : this.value(schema, sent, inner);
  }

  private map(schema: Schema, sent: Json, place: Place): JsonObject {
    if (!isObject(sent)) throw misfit(sent, place, goType(schema));
    if (schema.properties !== undefined) return this.object(schema, sent, place.path);
    const decoded: JsonObject = {};
    const inner = schema.additionalProperties;
    for (const [key, value] of Object.entries(sent)) {
      const place2 = { ...place, path: [...place.path, key] };
      const known =
        inner === undefined
          ? value
          : value === null
            ? this.zero(inner, place2)
            : this.value(inner, value, place2);
      setField(decoded, key, known);
    }
    return decoded;
  }
}

function scalar(schema: Schema, sent: Json, place: Place): Json {
  switch (schema.format) {
    case "quantity": {
      const quantity = parseQuantity(sent);
      if (quantity !== undefined) return formatQuantity(quantity);
      throw new DecodeError(
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
      );
    }
    case "int-or-string":
      if (typeof sent === "string" || Number.isInteger(sent)) return sent;
      throw misfit(sent, place, "intstr.IntOrString");
    case "date-time":
    case "micro-time":
      return time(schema.format, sent, place);
    default:
  }
  switch (schema.type) {
    case "string":
      if (typeof sent !== "string") throw misfit(sent, place, "string");
      if (schema.format === "byte") checkBase64(sent);
      return sent;
    case "boolean":
      if (typeof sent !== "boolean") throw misfit(sent, place, "bool");
      return sent;
    case "integer":
      if (typeof sent !== "number" || !Number.isInteger(sent))
        throw misfit(sent, place, schema.format ?? "int64");
      if (schema.format === "int32" && Math.abs(sent) > 2 ** 31) throw misfit(sent, place, "int32");
      return sent;
    case "number":
      if (typeof sent !== "number") throw misfit(sent, place, "float64");
      return sent;
    default:
      return sent;
  }
}

function time(format: "date-time" | "micro-time", sent: Json, place: Place): Json {
  if (typeof sent !== "string") throw misfit(sent, place, "string");
  const ms = parseTimestamp(sent);
  if (ms === undefined) {
    throw new DecodeError(
      `parsing time ${JSON.stringify(JSON.stringify(sent))} as "2006-01-02T15:04:05Z07:00": cannot parse`,
    );
  }
  return format === "micro-time" ? microTime(sent, ms) : formatTimestamp(ms);
}

// Parsed times have milliseconds, but MicroTime has microseconds, so the last digits come from the text.
function microTime(sent: string, ms: number): string {
  const digits = /\.(\d+)/.exec(sent)?.[1] ?? "";
  return `${formatMicroTimestamp(ms).slice(0, 20)}${digits.padEnd(6, "0").slice(0, 6)}Z`;
}

function checkBase64(text: string): void {
  const wrong = /[^A-Za-z0-9+/=\r\n]/.exec(text)?.index;
  const payload = text.replaceAll(/[\r\n]/g, "");
  if (wrong !== undefined || payload.length % 4 !== 0) {
    throw new DecodeError(`illegal base64 data at input byte ${wrong ?? payload.length}`);
  }
}

function misfit(sent: Json, place: Place, type: string): DecodeError {
  const path = dotted(place.path).replaceAll(/\[\d+\]/g, "");
  return new DecodeError(
    `json: cannot unmarshal ${jsonName(sent)} into Go struct field ${place.struct}.${path} of type ${type}`,
  );
}

function dotted(path: readonly (string | number)[]): string {
  return path.join(".");
}

function jsonName(value: Json): string {
  if (typeof value === "number") return Number.isInteger(value) ? "number" : `number ${value}`;
  if (typeof value === "boolean") return "bool";
  if (Array.isArray(value)) return "array";
  return typeof value === "string" ? "string" : "object";
}

function goType(schema: Schema): string {
  if (schema.goName !== undefined) return `v1.${schema.goName}`;
  if (schema.type === "object") return `map[string]${goType(schema.additionalProperties ?? {})}`;
  if (schema.type === "boolean") return "bool";
  return schema.format ?? schema.type ?? "interface {}";
}

function isZero(value: Json): boolean {
  if (value === "" || value === 0 || value === false || value === null) return true;
  if (Array.isArray(value)) return value.length === 0;
  return isObject(value) && Object.keys(value).length === 0;
}
