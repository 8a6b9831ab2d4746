// Validates the data of Secrets and ConfigMaps: keys must be file names, the total size is limited, and immutable data
// cannot change.
import { forbiddenField } from "../causes.ts";
import { equalJson } from "../json.ts";
import { type Causes, refuse } from "./field-checks.ts";
import { configKeyProblems } from "./names.ts";

export const dataBytesMax = 1024 * 1024;

export function checkKeys(field: string, data: Readonly<Record<string, string>>): Causes {
  return Object.keys(data).flatMap((key) => refuse(`${field}[${key}]`, key, configKeyProblems(key)));
}

/** The decoded size of base64 text. */
export function decodedBytes(base64: string): number {
  return Buffer.byteLength(base64, "base64");
}

interface Sealable {
  readonly immutable?: boolean;
  readonly data?: Readonly<Record<string, string>>;
  readonly binaryData?: Readonly<Record<string, string>>;
}

export function checkSeal(object: Sealable, previous: Sealable): Causes {
  if (previous.immutable !== true) return [];
  const why = "field is immutable when `immutable` is set";
  return [
    ...(object.immutable === true ? [] : [forbiddenField("immutable", why)]),
    ...(equalJson(object.data ?? {}, previous.data ?? {}) ? [] : [forbiddenField("data", why)]),
    ...(equalJson(object.binaryData ?? {}, previous.binaryData ?? {})
      ? []
      : [forbiddenField("binaryData", why)]),
  ];
}
