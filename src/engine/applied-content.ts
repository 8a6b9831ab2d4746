// Hashes the part of a live object that krane applied, to detect drift (K11).
//
// Server-side apply records in managedFields which fields krane applied, and drops a field from that record as soon
// as anybody else changes or removes it. So, as long as nobody touched them, the recorded fields with their live
// values are exactly the manifest that krane sent. The manifest and the live object then have the same hash, also for
// an agent that has just started. Defaults of the server are not part of it, and neither is the seal, which is verified
// instead. Fields of others in the spec add a second part to the hash, so that an object that has any never looks up to
// date (K12).
import { defaultOf, eachItem, isServerDefault, type ServerDefaults } from "../kube/server-defaults.ts";
import type { KubeObject, ObjectMeta } from "../kube/types.ts";
import type { JsonBytes } from "../model/json-bytes.ts";
import { annotationKeys } from "../model/labels.ts";
import { hashOf, hashWritten } from "../model/manifest-hash.ts";
import { sortedNames } from "../model/sorted-names.ts";
import { amount, type DriftedField, findDriftedFields } from "./drifted-fields.ts";
import { hasKeys, isRecord, type Json, namesParts, ownApply, parseStep } from "./field-owners.ts";

/** The content hash of a manifest as it is sent. */
export function manifestContentHash(manifest: KubeObject): string {
  const { apiVersion: _, kind: __, metadata, ...rest } = manifest as KubeObject & Json;
  const { name: ___, namespace: ____, ...meta } = (metadata ?? {}) as ObjectMeta & Json;
  return hashWritten((to) => write(to, { ...rest, metadata: meta }, undefined));
}

/** Which fields an object may have besides those that krane applied. */
export interface AllowedFields {
  readonly defaults: ServerDefaults;
  isTolerated(field: DriftedField): boolean;
}

// Between the hash of what krane applied and that of what others added.
const separator = "+";

/** The content hash of a live object; "" if krane has applied nothing to it. */
export function appliedContentHash(object: KubeObject, allowed?: AllowedFields): string {
  const entry = ownApply(object);
  if (!isRecord(entry?.fieldsV1)) return "";
  const scan: Scan = { isForeign: false };
  const { fieldsV1 } = entry;
  const applied = hashWritten((to) => write(to, object, fieldsV1, "", allowed?.defaults, allowed && scan));
  if (allowed === undefined || !scan.isForeign) return applied;
  const foreign = driftedFieldsOf(object, allowed);
  if (foreign.length === 0) return applied;
  const values = foreign.map(({ path, value }) => [path, value]);
  return [applied, hashOf(values)].join(separator);
}

/** What differs from the manifest and is not tolerated; without a manifest, what others added. */
export function driftedFieldsOf(
  object: KubeObject,
  { defaults, isTolerated }: AllowedFields,
  manifest?: KubeObject,
): readonly DriftedField[] {
  return findDriftedFields(object, defaults, manifest).filter((field) => !isTolerated(field));
}

/** The part of a content hash that is about what krane applied. */
export function appliedPart(contentHash: string): string {
  const [applied = ""] = contentHash.split(separator);
  return applied;
}

/** What a pass over an object found besides its text. */
interface Scan {
  isForeign: boolean;
}

/**
 * Writes, as JSON with sorted keys, the part of a value that a field set covers; without a set, all of it. Every event of
 * every object comes through here, so it is one pass, without copying parts.
 */
function write(
  to: JsonBytes,
  value: unknown,
  fields: unknown,
  name = "",
  defaults?: ServerDefaults[string],
  scan?: Scan,
): void {
  if (typeof value === "string") to.string(value);
  else if (typeof value !== "object" || value === null) to.raw(JSON.stringify(value) ?? "null");
  else {
    const covered = isRecord(fields) && namesParts(fields) ? fields : undefined;
    if (Array.isArray(value)) writeItems(to, value, covered, defaults, scan);
    else writeMembers(to, value as Json, covered, name, defaults, scan);
  }
}

function writeMembers(
  to: JsonBytes,
  value: Json,
  fields: Json | undefined,
  name: string,
  defaults: ServerDefaults[string] | undefined,
  scan: Scan | undefined,
): void {
  const isAmounts = name === "limits" || name === "requests";
  let separator = "";
  to.raw("{");
  for (const key of sortedNames(value)) {
    const member = value[key];
    if (member === undefined) continue;
    const below = fields?.[memberStep(key)];
    if (fields !== undefined && below === undefined) {
      if (scan !== undefined && !scan.isForeign)
        scan.isForeign = !isServerDefault(member, defaultOf(defaults, key));
      continue;
    }
    if (key === annotationKeys.seal) continue;
    const before = to.length;
    to.raw(separator);
    to.string(key);
    to.raw(":");
    const start = to.length;
    if (isAmounts && typeof member === "string") to.raw(`"${amount(key, member)}"`);
    else write(to, member, below, key, defaultOf(defaults, key), scan);
    // The seal was the only one.
    if (key === "annotations" && isRecord(member) && to.length - start === "{}".length) to.cut(before);
    else separator = ",";
  }
  to.raw("}");
}

// The names of most fields come with every object. Built each time, they would have to be looked up as new strings.
const memberSteps = new Map<string, string>();
const memberStepsMax = 4_096;

/** How managedFields name a member. */
function memberStep(key: string): string {
  const known = memberSteps.get(key);
  if (known !== undefined) return known;
  const step = `f:${key}`;
  if (memberSteps.size < memberStepsMax) memberSteps.set(key, step);
  return step;
}

/** List items are named by their keys, k:{"name":"PORT"}, or by their value, v:"text". */
function writeItems(
  to: JsonBytes,
  items: readonly unknown[],
  fields: Json | undefined,
  defaults: ServerDefaults[string] | undefined,
  scan: Scan | undefined,
): void {
  const wanted = fields && itemNames(fields);
  const expected = defaultOf(defaults, eachItem);
  let separator = "";
  to.raw("[");
  for (const item of items) {
    const match = wanted?.find((name) => isNamed(item, name));
    if (wanted !== undefined && match === undefined) {
      if (scan !== undefined && !scan.isForeign) scan.isForeign = !isServerDefault(item, expected);
      continue;
    }
    const below = match?.isKey ? fields?.[match.step] : undefined;
    to.raw(separator);
    write(to, item ?? null, below, "", expected, scan);
    separator = ",";
  }
  to.raw("]");
}

/** What a step of a field set says about an item. */
interface ItemName {
  readonly step: string;
  readonly isKey: boolean;
  readonly value: unknown;
}

function itemNames(fields: Json): readonly ItemName[] {
  const names: ItemName[] = [];
  for (const step in fields) if (step !== ".") names.push(itemName(step));
  return names;
}

function isNamed(item: unknown, { isKey, value }: ItemName): boolean {
  return isKey ? hasKeys(item, value) : item === value;
}

// The same for most objects, as the names of fields are. Others can write any, so long ones are not kept.
const knownItemNames = new Map<string, ItemName>();
const itemNameCharsMax = 128;

function itemName(step: string): ItemName {
  const known = knownItemNames.get(step);
  if (known !== undefined) return known;
  const name = { step, isKey: step.startsWith("k:"), value: parseStep(step) };
  if (knownItemNames.size < memberStepsMax && step.length <= itemNameCharsMax) knownItemNames.set(step, name);
  return name;
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
