// Reads from managedFields which field manager wrote a field. A manager's name is whatever its client sent, so it is
// shown to people and never decides anything (K4).
import type { KubeObject, ManagedFieldsEntry, ObjectMeta } from "../kube/types.ts";
import { fieldManager } from "../model/labels.ts";
import type { FieldStep } from "./field-changes.ts";

type Json = Readonly<Record<string, unknown>>;

/**
 * The entry that wrote the field last. Entries of subresources count too: `kubectl scale` writes spec.replicas through
 * one. krane's own apply counts only if no other entry has the field: then somebody applied as `krane`. Nobody is
 * recorded for a field that was removed, so the result is undefined then.
 */
export function ownerOfField(object: KubeObject, path: readonly FieldStep[]): ManagedFieldsEntry | undefined {
  const owners = (object.metadata?.managedFields ?? []).filter(({ fieldsV1 }) =>
    covers(fieldsV1, object, path),
  );
  return newest(owners.filter((entry) => !isOwnApply(entry))) ?? newest(owners);
}

/** The other manager that wrote the object last; writes of the status do not count. */
export function lastOtherManager(metadata: ObjectMeta | undefined): string | undefined {
  const others = (metadata?.managedFields ?? []).filter(
    (entry) => !isOwnApply(entry) && entry.subresource !== "status",
  );
  return newest(others)?.manager;
}

function newest(entries: readonly ManagedFieldsEntry[]): ManagedFieldsEntry | undefined {
  let last: ManagedFieldsEntry | undefined;
  // The API server writes all times in the same format, which sorts as text.
  for (const entry of entries) if (last === undefined || (entry.time ?? "") > (last.time ?? "")) last = entry;
  return last;
}

function isOwnApply({ manager, operation, subresource }: ManagedFieldsEntry): boolean {
  return manager === fieldManager && operation === "Apply" && !subresource;
}

/** Whether a field set covers a field of the object, or a part of it. */
function covers(fieldsV1: unknown, object: KubeObject, path: readonly FieldStep[]): boolean {
  let fields = fieldsV1;
  let value: unknown = object;
  for (const [depth, step] of path.entries()) {
    if (!isRecord(fields)) return false;
    // An empty set covers the whole value: a list or map that is written as a whole.
    if (depth > 0 && Object.keys(fields).length === 0) return true;
    value = valueAt(value, step);
    if (value === undefined) return false;
    const name = step.kind === "member" ? `f:${step.name}` : itemStep(fields, value);
    fields = name === undefined ? undefined : fields[name];
  }
  return fields !== undefined;
}

function valueAt(value: unknown, step: FieldStep): unknown {
  if (step.kind === "item") return Array.isArray(value) ? value[step.index] : undefined;
  return isRecord(value) ? value[step.name] : undefined;
}

/** Items are named by their keys, k:{"name":"web"}, or by their value, v:"text". */
function itemStep(fields: Json, item: unknown): string | undefined {
  return Object.keys(fields).find((name) => {
    const named = parseStep(name);
    if (name.startsWith("v:")) return named === item;
    if (!name.startsWith("k:") || !isRecord(named) || !isRecord(item)) return false;
    return Object.entries(named).every(([key, value]) => item[key] === value);
  });
}

function parseStep(step: string): unknown {
  try {
    return JSON.parse(step.slice(2));
  } catch {
    return undefined;
  }
}

function isRecord(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
