// The values that a label of a metric can have, as the docs list them.
import { allKinds } from "../../src/kinds/kinds.ts";
import type { LabelDefinitions } from "../../src/telemetry/metric-catalogue.ts";

/** Undefined where they are not listed. */
export function valuesOf(values: LabelDefinitions[string]): readonly string[] | undefined {
  if (values === "any") return undefined;
  if (!("controllersAnd" in values)) return values;
  return [...allKinds.map(({ controller }) => controller), ...values.controllersAnd];
}
