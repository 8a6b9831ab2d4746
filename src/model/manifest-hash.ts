// A short hash of what krane asks for, written onto the object it asks for. It tells a manifest that
// was already applied from a new one, also after a restart, without sending either (K11).
import { createHash } from "node:crypto";
import { annotationKeys } from "./labels.ts";

// 96 bits: no two states of one object meet by accident.
const hashBytes = 12;

/** Equal for equal content, whatever the order of the keys. */
export function hashOf(value: unknown): string {
  return createHash("sha256").update(canonicalJson(value)).digest().toString("base64url", 0, hashBytes);
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

/** JSON with sorted keys; members that are undefined are absent, as in JSON. */
function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map((item) => canonicalJson(item ?? null)).join()}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  const members = Object.entries(value)
    .filter(([, member]) => member !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, member]) => `${JSON.stringify(name)}:${canonicalJson(member)}`);
  return `{${members.join()}}`;
}
