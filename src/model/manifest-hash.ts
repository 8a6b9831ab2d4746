// A short hash of a manifest, stored in an annotation of the object. It shows whether a manifest was already applied, also
// after a restart, without sending it (K11).
import type { ObjectMeta } from "../kube/types.ts";
import { JsonBytes } from "./json-bytes.ts";
import { keptText } from "./kept-text.ts";
import { annotationKeys } from "./labels.ts";
import { sortedNames } from "./sorted-names.ts";

// 96 bits, six per character: enough that two states of an object do not collide by accident.
const hashChars = 16;

const json = new JsonBytes();

/** Equal for equal content, whatever the order of the keys. */
export function hashOf(value: unknown): string {
  return hashWritten((to) => writeCanonical(value, to));
}

/** The hash of the JSON that the function writes. */
export function hashWritten(write: (to: JsonBytes) => void): string {
  // What a function that threw has written is dropped.
  json.cut(0);
  write(json);
  return json.digest().slice(0, hashChars);
}

interface Annotated {
  metadata?: { annotations?: { [name: string]: string } };
}

/** The same manifest with its own hash as an annotation. */
export function withManifestHash<T extends Annotated>(manifest: T): T {
  return annotated(manifest, annotationKeys.manifestHash, hashOf(manifest));
}

/** The same pod template with its own hash as an annotation, which every pod made from it inherits. */
export function withTemplateHash<T extends Annotated>(template: T): T {
  return annotated(template, annotationKeys.templateHash, hashOf(template));
}

interface WithMetadata {
  readonly metadata?: ObjectMeta | undefined;
}

/** The hash on a live object, as somebody may have edited it. */
export function manifestHashOf({ metadata }: WithMetadata): string | undefined {
  return keptText(metadata?.annotations?.[annotationKeys.manifestHash]);
}

/** The hash on a live pod or on the template of a live object, as somebody may have edited it. */
export function templateHashOf({ metadata }: WithMetadata): string | undefined {
  return keptText(metadata?.annotations?.[annotationKeys.templateHash]);
}

function annotated<T extends Annotated>(object: T, key: string, value: string): T {
  const { metadata } = object;
  return { ...object, metadata: { ...metadata, annotations: { ...metadata?.annotations, [key]: value } } };
}

/** JSON with sorted keys; undefined members are left out, as in JSON. */
function writeCanonical(value: unknown, to: JsonBytes): void {
  if (typeof value === "string") to.string(value);
  else if (typeof value !== "object" || value === null) to.raw(JSON.stringify(value) ?? "null");
  else if (Array.isArray(value)) writeItems(value, to);
  else writeMembers(value as Readonly<Record<string, unknown>>, to);
}

function writeItems(items: readonly unknown[], to: JsonBytes): void {
  let separator = "";
  to.raw("[");
  for (const item of items) {
    to.raw(separator);
    writeCanonical(item ?? null, to);
    separator = ",";
  }
  to.raw("]");
}

function writeMembers(members: Readonly<Record<string, unknown>>, to: JsonBytes): void {
  let separator = "";
  to.raw("{");
  for (const name of sortedNames(members)) {
    const member = members[name];
    if (member === undefined) continue;
    to.raw(separator);
    to.string(name);
    to.raw(":");
    writeCanonical(member, to);
    separator = ",";
  }
  to.raw("}");
}
