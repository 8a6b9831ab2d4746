// What of a live object is krane's doing, and a hash of it: how drift is seen (K11).
//
// Server-side apply records in managedFields which fields krane applied, and takes a field out of that
// record as soon as anybody else changes or removes it. So the fields on record, with the values that
// they have in the live object, are exactly the manifest that krane sent, as long as nobody touched it.
// The same hash can therefore be taken of the manifest and of the live object, by an agent that has
// just started too. Fields that krane does not send, and the defaults of the server, are not in it.
import type { KubeObject, ManagedFieldsEntry, ObjectMeta } from "../kube/types.ts";
import { fieldManager } from "../model/labels.ts";
import { hashOf } from "../model/manifest-hash.ts";
import { parseMebibytes, parseMillicores } from "../model/quantities.ts";

type Json = Readonly<Record<string, unknown>>;

/** Of a manifest, as it is sent. */
export function manifestContentHash(manifest: KubeObject): string {
  const { apiVersion: _, kind: __, metadata, ...rest } = manifest as KubeObject & Json;
  const { name: ___, namespace: ____, ...meta } = (metadata ?? {}) as ObjectMeta & Json;
  return hashOf(normalized({ ...rest, metadata: meta }));
}

/** Of a live object; "" where krane has applied nothing to it. */
export function appliedContentHash(object: KubeObject): string {
  const entry = (object.metadata?.managedFields ?? []).find(isOwnApply);
  if (entry === undefined || !isRecord(entry.fieldsV1)) return "";
  return hashOf(normalized(extract(object, entry.fieldsV1)));
}

/** Who else changed the object last; the status does not count. */
export function lastOtherManager(metadata: ObjectMeta | undefined): string | undefined {
  let newest: ManagedFieldsEntry | undefined;
  for (const entry of metadata?.managedFields ?? []) {
    if (isOwnApply(entry) || entry.subresource) continue;
    if (newest === undefined || (entry.time ?? "") > (newest.time ?? "")) newest = entry;
  }
  return newest?.manager;
}

function isOwnApply({ manager, operation, subresource }: ManagedFieldsEntry): boolean {
  return manager === fieldManager && operation === "Apply" && !subresource;
}

/** The part of a value that a set of fields covers; a set without members covers the whole value. */
function extract(value: unknown, fields: Json): unknown {
  const steps = Object.keys(fields).filter((step) => step !== ".");
  if (steps.length === 0) return value;
  if (Array.isArray(value)) return extractItems(value, fields, steps);
  if (!isRecord(value)) return value;
  const part: Record<string, unknown> = {};
  for (const step of steps) {
    const name = step.slice(2);
    const below = fields[step];
    if (step.startsWith("f:") && name in value)
      part[name] = extract(value[name], isRecord(below) ? below : {});
  }
  return part;
}

/** List items are named by their keys, k:{"name":"PORT"}, or by their value, v:"text". */
function extractItems(items: readonly unknown[], fields: Json, steps: readonly string[]): unknown[] {
  const matchers = steps.map((step) => {
    const below = fields[step];
    return { wanted: parseStep(step), isKey: step.startsWith("k:"), below: isRecord(below) ? below : {} };
  });
  return items.flatMap((item) => {
    const match = matchers.find(({ wanted, isKey }) => (isKey ? hasKeys(item, wanted) : item === wanted));
    return match === undefined ? [] : [match.isKey ? extract(item, match.below) : item];
  });
}

function parseStep(step: string): unknown {
  try {
    return JSON.parse(step.slice(2));
  } catch {
    return undefined;
  }
}

function hasKeys(item: unknown, keys: unknown): boolean {
  return (
    isRecord(item) && isRecord(keys) && Object.entries(keys).every(([name, value]) => item[name] === value)
  );
}

// The server writes 1024Mi as 1Gi. Rounding loses nothing here: who changes an amount also takes the
// field out of krane's record.
function normalized(value: unknown, name = ""): unknown {
  if (Array.isArray(value)) return value.map((item) => normalized(item));
  if (!isRecord(value)) return value;
  const isAmounts = name === "limits" || name === "requests";
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => [
      key,
      isAmounts && typeof member === "string" ? amount(key, member) : normalized(member, key),
    ]),
  );
}

function amount(resource: string, text: string): string {
  return resource === "cpu" ? `${parseMillicores(text)}m` : `${parseMebibytes(text)}Mi`;
}

function isRecord(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
