// A short hash of a manifest, stored in an annotation of the object. It shows whether a manifest was already applied, also
// after a restart, without sending it (K11).
import { hash } from "node:crypto";
import { annotationKeys } from "./labels.ts";
import { sortedNames } from "./sorted-names.ts";

// 96 bits, six per character: enough that two states of an object do not collide by accident.
const hashChars = 16;

/** Equal for equal content, whatever the order of the keys. */
export function hashOf(value: unknown): string {
  return hashOfText(canonicalJson(value));
}

export function hashOfText(text: string): string {
  return hash("sha256", text, "base64url").slice(0, hashChars);
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

function annotated<T extends Annotated>(object: T, key: string, value: string): T {
  const { metadata } = object;
  return { ...object, metadata: { ...metadata, annotations: { ...metadata?.annotations, [key]: value } } };
}

/**
 * JSON with sorted keys; undefined members are left out, as in JSON. It runs several times for every object that is
 * applied, so it builds the text directly, without a list of parts.
 */
function canonicalJson(value: unknown): string {
  if (typeof value === "string") return quoted(value);
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  let text = "";
  if (Array.isArray(value)) {
    for (const item of value) text += `${text === "" ? "" : ","}${canonicalJson(item ?? null)}`;
    return `[${text}]`;
  }
  const members = value as Readonly<Record<string, unknown>>;
  for (const name of sortedNames(members)) {
    const member = members[name];
    if (member === undefined) continue;
    text += `${text === "" ? "" : ","}${quoted(name)}:${canonicalJson(member)}`;
  }
  return `{${text}}`;
}

// All but quotes, backslashes, control characters and surrogates.
const needsNoEscape = /^[ !#-[\]-\ud7ff\ue000-\uffff]*$/;

/** A string as JSON. Few strings need escapes, and looking for these is quicker than JSON.stringify(). */
export function quoted(text: string): string {
  return needsNoEscape.test(text) ? `"${text}"` : JSON.stringify(text);
}
