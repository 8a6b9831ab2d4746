// Converts rows of the table `objects`. A row that this version cannot read becomes
// "unreadable" and is never left out: to an agent it would look as if the object had
// vanished.
import { type ApplyInit, type ApplyMessage, type KindName, kindOf } from "../../kinds/kinds.ts";
import { createSpec, decodeSpec } from "../kind-messages.ts";
import type { Row } from "../store.ts";

/** Protobuf: the kind's Apply message. */
export const specFormat = 1;

/** The largest integer that the database can store. A client may send a larger one. */
const numberMax = 2n ** 63n - 1n;

export function withinRange(number: bigint): bigint {
  return number < numberMax ? number : numberMax;
}

export const objectColumns =
  "o.id, o.name, o.desired, o.format, o.spec, o.deployment_id, o.app_id, o.version, o.content_hash, o.created_at_ms";

/** 64-bit numbers arrive as text. */
export interface ObjectRow {
  readonly id: string;
  readonly name: string;
  readonly desired: string;
  readonly format: number;
  readonly spec: Buffer;
  readonly deployment_id: string | null;
  readonly app_id: string | null;
  readonly version: string;
  /** Null on a row that a migration has not reached yet. */
  readonly content_hash: Buffer | null;
  readonly created_at_ms: string | null;
}

/** From a LEFT JOIN, where no object matched. */
export type MaybeObjectRow = ObjectRow | { readonly [Column in keyof ObjectRow]: null };

export function hasObject<T extends MaybeObjectRow>(row: T): row is T & ObjectRow {
  return row.id !== null;
}

export function decodeRow<K extends KindName>(kind: K, row: ObjectRow): Row<K> {
  const more = {
    ...(row.deployment_id !== null && { deploymentId: row.deployment_id }),
    ...(row.app_id !== null && { appId: row.app_id }),
    ...(row.created_at_ms !== null && { createdAtMs: Number(row.created_at_ms) }),
    // A copy: the buffer keeps the whole result in memory.
    ...(row.content_hash !== null && { contentHash: new Uint8Array(row.content_hash) }),
  };
  const spec = readSpec(kind, row);
  const { id, desired } = row;
  const version = BigInt(row.version);
  if (spec !== undefined && (desired === "running" || desired === "stopped")) {
    return { id, spec, desired, version, ...more };
  }
  return { id, spec: spec ?? bareSpec(kind, row), desired: "unreadable", version, ...more };
}

function readSpec<K extends KindName>(kind: K, { id, format, spec }: ObjectRow): ApplyMessage<K> | undefined {
  if (format !== specFormat) return undefined;
  try {
    // A copy: bytes fields would otherwise be Buffers that keep the whole result in memory.
    const decoded = decodeSpec(kind, new Uint8Array(spec));
    return kindOf(kind).idOf(decoded) === id ? decoded : undefined;
  } catch {
    return undefined;
  }
}

/** Only its version is ever sent. */
function bareSpec<K extends KindName>(kind: K, { name }: ObjectRow): ApplyMessage<K> {
  const init: { k8sName: string } = { k8sName: name.slice(name.lastIndexOf("/") + 1) };
  return createSpec(kind, init as ApplyInit<K>);
}
