// Hashes the part of a live object that krane applied, to detect drift (K11).
//
// Server-side apply records in managedFields which fields krane applied, and drops a field from that record as soon
// as anybody else changes or removes it. So, as long as nobody touched them, the recorded fields with their live
// values are exactly the manifest that krane sent. The manifest and the live object then have the same hash, also for
// an agent that has just started. Fields that krane does not send and server defaults are not part of it. Neither is
// the seal, which is verified instead.
import type { KubeObject, ManagedFieldsEntry, ObjectMeta } from "../kube/types.ts";
import { annotationKeys, fieldManager } from "../model/labels.ts";
import { hashOfText } from "../model/manifest-hash.ts";
import { parseMebibytes, parseMillicores } from "../model/quantities.ts";
import { sortedNames } from "../model/sorted-names.ts";

type Json = Readonly<Record<string, unknown>>;

/** The content hash of a manifest as it is sent. */
export function manifestContentHash(manifest: KubeObject): string {
  const { apiVersion: _, kind: __, metadata, ...rest } = manifest as KubeObject & Json;
  const { name: ___, namespace: ____, ...meta } = (metadata ?? {}) as ObjectMeta & Json;
  return hashOfText(textOf({ ...rest, metadata: meta }, undefined));
}

/** The content hash of a live object; "" if krane has applied nothing to it. */
export function appliedContentHash(object: KubeObject): string {
  const entry = (object.metadata?.managedFields ?? []).find(isOwnApply);
  if (entry === undefined || !isRecord(entry.fieldsV1)) return "";
  return hashOfText(textOf(object, entry.fieldsV1));
}

/** The other field manager that changed the object last; changes of the status do not count. */
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

/**
 * JSON with sorted keys of the part of a value that a field set covers; without a set, of all of it. Every event of
 * every object comes through here, so the text is built in one pass, without copying parts.
 */
function textOf(value: unknown, fields: unknown, name = ""): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  const covered = isRecord(fields) && namesParts(fields) ? fields : undefined;
  return Array.isArray(value) ? textOfItems(value, covered) : textOfMembers(value as Json, covered, name);
}

/** A set without members covers the whole value. */
function namesParts(fields: Json): boolean {
  for (const step in fields) if (step !== ".") return true;
  return false;
}

function textOfMembers(value: Json, fields: Json | undefined, name: string): string {
  const isAmounts = name === "limits" || name === "requests";
  let text = "";
  for (const key of sortedNames(value)) {
    const member = value[key];
    const below = fields?.[`f:${key}`];
    if (member === undefined || (fields !== undefined && below === undefined)) continue;
    if (key === annotationKeys.seal) continue;
    const part =
      isAmounts && typeof member === "string" ? `"${amount(key, member)}"` : textOf(member, below, key);
    // The seal was the only one.
    if (key === "annotations" && part === "{}") continue;
    text += `${text === "" ? "" : ","}${JSON.stringify(key)}:${part}`;
  }
  return `{${text}}`;
}

/** List items are named by their keys, k:{"name":"PORT"}, or by their value, v:"text". */
function textOfItems(items: readonly unknown[], fields: Json | undefined): string {
  const matchers = fields && Object.keys(fields).filter((step) => step !== ".");
  const wanted = matchers?.map((step) => ({ step, isKey: step.startsWith("k:"), value: parseStep(step) }));
  let text = "";
  for (const item of items) {
    const match = wanted?.find(({ isKey, value }) => (isKey ? hasKeys(item, value) : item === value));
    if (wanted !== undefined && match === undefined) continue;
    const below = match?.isKey ? fields?.[match.step] : undefined;
    text += `${text === "" ? "" : ","}${textOf(item ?? null, below)}`;
  }
  return `[${text}]`;
}

function parseStep(step: string): unknown {
  try {
    return JSON.parse(step.slice(2));
  } catch {
    return undefined;
  }
}

function hasKeys(item: unknown, keys: unknown): boolean {
  if (!isRecord(item) || !isRecord(keys)) return false;
  for (const name in keys) if (item[name] !== keys[name]) return false;
  return true;
}

// As krane writes them, and as the server returns most of them.
const plainCpu = /^[1-9]\d{0,8}m$/;
const plainMemory = /^[1-9]\d{0,8}Mi$/;

// The server writes 1024Mi as 1Gi. Rounding loses nothing here: changing an amount also removes the field from
// krane's record.
function amount(resource: string, text: string): string {
  if (resource === "cpu") return plainCpu.test(text) ? text : `${parseMillicores(text)}m`;
  return plainMemory.test(text) ? text : `${parseMebibytes(text)}Mi`;
}

function isRecord(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Caches the content hash of a spec's manifest for as long as the spec lives. Manifests are large, and not kept. */
export class ContentHashes<Spec extends object> {
  private readonly known = new WeakMap<Spec, string>();

  of(spec: Spec, manifest: () => KubeObject): string {
    const known = this.known.get(spec);
    if (known !== undefined) return known;
    const hash = manifestContentHash(manifest());
    this.known.set(spec, hash);
    return hash;
  }
}
