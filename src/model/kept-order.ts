// An order that came by a call instead of by the stream, kept on the object that it is about. Nobody
// replays it, so without this a restarted krane would know neither what was ordered nor that the control
// plane cannot be asked about it.
//
// - The encrypted variables are not kept twice: the pod template has them, and their digest is kept here.
// - An annotation is believed only as long as krane is on record as the one who wrote it last. Whoever
//   edits it takes it out of that record: what they wrote is no order, and exempts nothing from resync.
import { createHash } from "node:crypto";
import type { ManagedFieldsEntry, ObjectMeta } from "../kube/types.ts";
import { annotationKeys, fieldManager } from "./labels.ts";

/** What a spec carries that was ordered by a call. */
export interface KeptOrder {
  /** As the annotation has it; see `sealOrder`. */
  readonly text: string;
  readonly readinessId?: string;
}

/** What a live object says about where it comes from. */
export interface OrderMark extends Partial<KeptOrder> {
  /** Base64, as the pod template has it; empty where there is none. */
  readonly blob: string;
}

/** Far above what a message without its variables needs; all annotations together may have 256 KiB. */
export const orderTextMax = 64 * 1024;
export const readinessIdMax = 256;

const scheduler = "scheduler";

/** `message`: the order in its binary form, without the blob. */
export function sealOrder(message: Uint8Array, blob: string): string {
  const order = Buffer.from(message).toString("base64");
  return blob === "" ? order : `${order}.${digestOf(blob)}`;
}

/** The order in its binary form; undefined where the blob is not the one that it was given with. */
export function openOrder(text: string, blob: string): Uint8Array | undefined {
  const [order = "", digest = ""] = text.split(".");
  if (digest !== (blob === "" ? "" : digestOf(blob))) return undefined;
  return Uint8Array.from(Buffer.from(order, "base64"));
}

/** Undefined for what the stream brought: its manifest does not mention any of this. */
export function orderAnnotations(kept: KeptOrder | undefined): Record<string, string> | undefined {
  if (kept === undefined) return undefined;
  return {
    [annotationKeys.origin]: scheduler,
    [annotationKeys.order]: kept.text,
    ...(kept.readinessId !== undefined && { [annotationKeys.readinessId]: kept.readinessId }),
  };
}

/** Undefined for an object that nobody ordered by a call. */
export function readOrderMark(metadata: ObjectMeta | undefined, blob: string): OrderMark | undefined {
  const annotations = metadata?.annotations ?? {};
  const text = annotations[annotationKeys.order];
  const readinessId = annotations[annotationKeys.readinessId];
  const isKept = text !== undefined && isWrittenByKrane(metadata, annotationKeys.order);
  const isMarked =
    annotations[annotationKeys.origin] === scheduler && isWrittenByKrane(metadata, annotationKeys.origin);
  if (!isKept && !isMarked) return undefined;
  return {
    blob,
    ...(isKept && { text }),
    ...(readinessId !== undefined && { readinessId }),
  };
}

function isWrittenByKrane(metadata: ObjectMeta | undefined, annotation: string): boolean {
  return (metadata?.managedFields ?? []).some((entry) => {
    if (entry.manager !== fieldManager || entry.operation !== "Apply" || entry.subresource) return false;
    return memberOf(entry.fieldsV1, "f:metadata", "f:annotations", `f:${annotation}`) !== undefined;
  });
}

function memberOf(fields: ManagedFieldsEntry["fieldsV1"], ...path: readonly string[]): unknown {
  let value: unknown = fields;
  for (const step of path) {
    if (typeof value !== "object" || value === null) return undefined;
    value = (value as Readonly<Record<string, unknown>>)[step];
  }
  return value;
}

function digestOf(blob: string): string {
  return createHash("sha256").update(blob).digest("base64url");
}
