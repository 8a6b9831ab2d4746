// Stores an order that came by a call instead of the stream in annotations of its object. No stream replays it, so
// otherwise a restarted krane would know neither the order nor that the control plane may not know the object.
//
// - The encrypted variables are not stored twice: the pod template has them, and only their digest is stored here.
// - An annotation counts only while managedFields names krane as its last writer. Anybody else's edit changes that
//   record, so it is not an order, and does not exempt the object from the resync.
import { createHash } from "node:crypto";
import type { ManagedFieldsEntry, ObjectMeta } from "../kube/types.ts";
import { annotationKeys, fieldManager } from "./labels.ts";

/** What a spec carries if a call ordered it. */
export interface KeptOrder {
  /** The text of the annotation; see `sealOrder`. */
  readonly text: string;
  readonly readinessId?: string;
}

/** What a live object's annotations say about its order. */
export interface OrderMark extends Partial<KeptOrder> {
  /** Base64, as in the pod template; empty if it has none. */
  readonly blob: string;
}

/** Far above what a message without its variables needs; all annotations together are limited to 256 KiB. */
export const orderTextMax = 64 * 1024;
export const readinessIdMax = 256;

const scheduler = "scheduler";

/** `message`: the order in binary form, without the blob. */
export function sealOrder(message: Uint8Array, blob: string): string {
  const order = Buffer.from(message).toString("base64");
  return blob === "" ? order : `${order}.${digestOf(blob)}`;
}

/** The order in binary form; undefined if it was sealed with another blob. */
export function openOrder(text: string, blob: string): Uint8Array | undefined {
  const [order = "", digest = ""] = text.split(".");
  if (digest !== (blob === "" ? "" : digestOf(blob))) return undefined;
  return Uint8Array.from(Buffer.from(order, "base64"));
}

/** Undefined for a spec from the stream, whose manifest has none of these annotations. */
export function orderAnnotations(kept: KeptOrder | undefined): Record<string, string> | undefined {
  if (kept === undefined) return undefined;
  return {
    [annotationKeys.origin]: scheduler,
    [annotationKeys.order]: kept.text,
    ...(kept.readinessId !== undefined && { [annotationKeys.readinessId]: kept.readinessId }),
  };
}

/** Undefined for an object that was not ordered by a call. */
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
