// Marks the object of an order that came by a call instead of the stream. The marks are for people: anybody who can edit
// the object can write them, so krane does not read them. The order itself is kept in krane's own namespace.
import { annotationKeys } from "./labels.ts";

/** What a spec carries if a call ordered it. */
export interface KeptOrder {
  /** A token of the caller. */
  readonly readinessId?: string;
}

export const readinessIdMax = 256;

const scheduler = "scheduler";

/** Undefined for a spec from the stream, whose manifest has none of these annotations. */
export function orderAnnotations(kept: KeptOrder | undefined): Record<string, string> | undefined {
  if (kept === undefined) return undefined;
  return {
    [annotationKeys.origin]: scheduler,
    ...(kept.readinessId !== undefined && { [annotationKeys.readinessId]: kept.readinessId }),
  };
}
