// Reads managedFields: what krane applied, and which field manager wrote a field. Only krane's own entry is compared with
// anything, by its hash. A manager's name is whatever its client sent, so it is shown to people and never decides
// anything (K4).
import type { KubeObject, ManagedFieldsEntry, ObjectMeta } from "../kube/types.ts";
import { fieldManager } from "../model/labels.ts";

export type Json = Readonly<Record<string, unknown>>;

/** A step from a value to one inside it: the name of a member, or an item of a list. */
export type FieldStep = string | FieldItem;

export interface FieldItem {
  /** Below 0 if the list lacks the item. */
  readonly index: number;
  readonly item: unknown;
  /** How people call it, if known. */
  readonly label?: string;
}

/** krane's entry in managedFields, which records what krane applied. */
export function ownApply({ metadata }: KubeObject): ManagedFieldsEntry | undefined {
  return (metadata?.managedFields ?? []).find(isOwnApply);
}

export function isOwnApply({ manager, operation, subresource }: ManagedFieldsEntry): boolean {
  return manager === fieldManager && operation === "Apply" && !subresource;
}

/**
 * The entry that wrote the field last. Entries of subresources count too: `kubectl scale` writes spec.replicas through
 * one. krane's own apply counts only if no other entry has the field: then somebody applied as `krane`. Nobody is
 * recorded for a field that was removed, so the result is undefined then.
 */
export function ownerOfField(
  { metadata }: KubeObject,
  path: readonly FieldStep[],
): ManagedFieldsEntry | undefined {
  const owners = (metadata?.managedFields ?? []).filter(({ fieldsV1 }) => covers(fieldsV1, path));
  return newest(owners.filter((entry) => !isOwnApply(entry))) ?? newest(owners);
}

/** The other manager that wrote the object last; writes of the status do not count. */
export function lastOtherManager(metadata: ObjectMeta | undefined): string | undefined {
  return newest(otherEntries(metadata))?.manager;
}

/**
 * The field that another manager has taken from krane, and that manager. An apply owns every field that it sends, until
 * another client changes or removes it; who removed it is not recorded.
 */
export function findTakenField(
  found: KubeObject,
  manifest: KubeObject,
): { readonly manager?: string | undefined; readonly field?: string | undefined } {
  const own = ownApply(found)?.fieldsV1;
  const taken = otherEntries(found.metadata).flatMap((entry) => {
    const field = firstTaken(manifest, entry.fieldsV1, own);
    return field === undefined ? [] : [{ entry, field }];
  });
  const last = newest(taken.map(({ entry }) => entry));
  const change = taken.find(({ entry }) => entry === last);
  return change === undefined
    ? { field: firstMissing(manifest, own, []) }
    : { field: change.field, manager: change.entry.manager };
}

function otherEntries(metadata: ObjectMeta | undefined): readonly ManagedFieldsEntry[] {
  return (metadata?.managedFields ?? []).filter(
    (entry) => !isOwnApply(entry) && entry.subresource !== "status",
  );
}

function newest(entries: readonly ManagedFieldsEntry[]): ManagedFieldsEntry | undefined {
  let last: ManagedFieldsEntry | undefined;
  // The API server writes all times in the same format, which sorts as text.
  for (const entry of entries)
    if (last === undefined || (entry.time ?? "") >= (last.time ?? "")) last = entry;
  return last;
}

/** Whether a field set has the field, or a part of it. */
function covers(fieldsV1: unknown, path: readonly FieldStep[]): boolean {
  let fields: unknown = fieldsV1;
  for (const step of path) {
    if (!isRecord(fields)) return false;
    if (fields !== fieldsV1 && !namesParts(fields)) return true;
    const name = typeof step === "string" ? `f:${step}` : itemStep(fields, step.item);
    fields = name === undefined ? undefined : fields[name];
  }
  return fields !== undefined;
}

/** The first field of the manifest that the set has and krane's own set lacks. */
function firstTaken(wanted: unknown, set: unknown, own: unknown, path = ""): string | undefined {
  if (!isRecord(set)) return undefined;
  if (!namesParts(set)) return own === undefined && path !== "" ? path : undefined;
  for (const [step, below] of Object.entries(set)) {
    const inner = innerOf(wanted, step);
    if (inner === undefined) continue;
    const ownInner = isRecord(own) ? own[step] : undefined;
    const field = firstTaken(inner, below, ownInner, path + pathStep(step, path));
    if (field !== undefined) return field;
  }
  return undefined;
}

/** The first member of the manifest that krane's set lacks: another client removed it. Lists are not searched. */
function firstMissing(wanted: unknown, own: unknown, path: readonly string[]): string | undefined {
  if (!isRecord(wanted) || !isRecord(own) || Object.keys(own).length === 0) return undefined;
  for (const [name, value] of Object.entries(wanted)) {
    if (path.length === 0 && name !== "spec" && name !== "metadata") continue;
    const isIdentity =
      path.length === 1 && path[0] === "metadata" && (name === "name" || name === "namespace");
    if (isIdentity || value === undefined) continue;
    const inner = own[`f:${name}`];
    const here = [...path, name];
    if (inner === undefined) return here.join(".");
    const field = firstMissing(value, inner, here);
    if (field !== undefined) return field;
  }
  return undefined;
}

/** The part of a value that a step of a field set names: f:name, k:{"name":"web"} or v:"text". */
function innerOf(value: unknown, step: string): unknown {
  if (step.startsWith("f:")) return isRecord(value) ? value[step.slice(2)] : undefined;
  return Array.isArray(value) ? value.find((item) => isNamedBy(item, step)) : undefined;
}

function pathStep(step: string, path: string): string {
  if (step.startsWith("f:")) return `${path === "" ? "" : "."}${step.slice(2)}`;
  const named = parseStep(step);
  return `[${isRecord(named) ? Object.values(named).join(",") : JSON.stringify(named)}]`;
}

/** A set without members covers the whole value. */
export function namesParts(fields: Json): boolean {
  for (const step in fields) if (step !== ".") return true;
  return false;
}

/** List items are named by their keys, k:{"name":"PORT"}, or by their value, v:"text". */
export function parseStep(step: string): unknown {
  try {
    return JSON.parse(step.slice(2));
  } catch {
    return undefined;
  }
}

/** The step of a field set that names the item. */
export function itemStep(fields: unknown, item: unknown): string | undefined {
  if (!isRecord(fields) || item === undefined) return undefined;
  return Object.keys(fields).find((step) => isNamedBy(item, step));
}

function isNamedBy(item: unknown, step: string): boolean {
  if (step.startsWith("k:")) return hasKeys(item, parseStep(step));
  return step.startsWith("v:") && item === parseStep(step);
}

export function hasKeys(item: unknown, keys: unknown): boolean {
  if (!isRecord(item) || !isRecord(keys)) return false;
  for (const name in keys) if (item[name] !== keys[name]) return false;
  return true;
}

export function isRecord(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
