// Checks of single fields that many kinds share. They return causes.

import { invalidValue, tooLong } from "../causes.ts";
import type { KubeStatusCause } from "../types.ts";
import { labelValueProblems, portNameProblems, qualifiedNameProblems } from "./names.ts";

export type Causes = readonly KubeStatusCause[];

const annotationBytesMax = 256 * 1024;
const portMax = 65_535;

/** Returns one cause for each reason why the value is invalid. */
export function refuse(field: string, value: unknown, reasons: readonly string[]): Causes {
  return reasons.map((reason) => invalidValue(field, value, reason));
}

export function checkNonNegative(field: string, value: number | undefined): Causes {
  return value !== undefined && value < 0
    ? [invalidValue(field, value, "must be greater than or equal to 0")]
    : [];
}

export function checkPort(field: string, value: number): Causes {
  return value >= 1 && value <= portMax
    ? []
    : [invalidValue(field, value, `must be between 1 and ${portMax}, inclusive`)];
}

/** A port number, or the name of a container port. */
export function checkPortOrName(field: string, value: number | string): Causes {
  return typeof value === "number" ? checkPort(field, value) : refuse(field, value, portNameProblems(value));
}

export function checkId(field: string, value: number | undefined): Causes {
  return value === undefined || (value >= 0 && value <= 2_147_483_647)
    ? []
    : [invalidValue(field, value, "must be between 0 and 2147483647, inclusive")];
}

/** A count or a percentage such as "25%"; `percentMax` limits the percentage. */
export function checkCountOrPercent(
  field: string,
  value: number | string | undefined,
  limit: { readonly percentMax?: number } = {},
): Causes {
  if (value === undefined) return [];
  if (typeof value === "number") return checkNonNegative(field, value);
  if (!/^[0-9]+%$/.test(value)) {
    return [
      invalidValue(
        field,
        value,
        "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
      ),
    ];
  }
  const { percentMax = Number.POSITIVE_INFINITY } = limit;
  return Number.parseInt(value, 10) > percentMax
    ? [invalidValue(field, value, `must not be greater than ${percentMax}%`)]
    : [];
}

export function checkLabels(field: string, labels: Readonly<Record<string, string>> | undefined): Causes {
  return Object.entries(labels ?? {}).flatMap(([key, value]) => [
    ...refuse(field, key, qualifiedNameProblems(key)),
    ...refuse(field, value, labelValueProblems(value)),
  ]);
}

export function checkAnnotations(
  field: string,
  annotations: Readonly<Record<string, string>> | undefined,
): Causes {
  const entries = Object.entries(annotations ?? {});
  // The domain of an annotation key may be upper case, unlike that of a label key.
  const found = entries.flatMap(([key]) => refuse(field, key, qualifiedNameProblems(key.toLowerCase())));
  const bytes = entries.reduce(
    (sum, [key, value]) => sum + Buffer.byteLength(key) + Buffer.byteLength(value),
    0,
  );
  return bytes > annotationBytesMax ? [...found, tooLong(field, annotationBytesMax)] : found;
}
