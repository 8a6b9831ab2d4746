// Creates the causes of a 422 with the real server's messages. Clients branch on `reason` and `field`.
import type { KubeStatusCause } from "./types.ts";

export function required(field: string, why = ""): KubeStatusCause {
  return {
    reason: "FieldValueRequired",
    message: why === "" ? "Required value" : `Required value: ${why}`,
    field,
  };
}

export function invalidValue(field: string, value: unknown, why: string): KubeStatusCause {
  return { reason: "FieldValueInvalid", message: `Invalid value: ${quote(value)}: ${why}`, field };
}

export function duplicate(field: string, value: unknown): KubeStatusCause {
  return { reason: "FieldValueDuplicate", message: `Duplicate value: ${quote(value)}`, field };
}

export function forbiddenField(field: string, why: string): KubeStatusCause {
  return { reason: "FieldValueForbidden", message: `Forbidden: ${why}`, field };
}

export function unsupported(field: string, value: unknown, allowed: readonly string[]): KubeStatusCause {
  const list = allowed.map((item) => quote(item)).join(", ");
  return {
    reason: "FieldValueNotSupported",
    message: `Unsupported value: ${quote(value)}: supported values: ${list}`,
    field,
  };
}

export function tooLong(field: string, bytesMax: number): KubeStatusCause {
  return {
    reason: "FieldValueTooLong",
    message: `Too long: may not be more than ${bytesMax} bytes`,
    field,
  };
}

export function immutable(field: string, value: unknown): KubeStatusCause {
  return invalidValue(field, value, "field is immutable");
}

// Go prints strings quoted, numbers and booleans bare, and everything else as JSON.
function quote(value: unknown): string {
  return JSON.stringify(value) ?? "null";
}
