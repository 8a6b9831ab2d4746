// The label that tells the pods of one template from those of the next. Any stable hash
// will do; nothing outside compares it with that of another server.
import { createHash } from "node:crypto";
import type { PodTemplateSpec } from "kubernetes-types/core/v1.js";
import { isObject } from "../json.ts";

export const templateHashLabel = "pod-template-hash";

const alphabet = "bcdfghjklmnpqrstvwxz2456789";
const length = 10;

export function templateHash(template: PodTemplateSpec): string {
  const digest = createHash("sha256")
    .update(JSON.stringify(sorted(template)))
    .digest();
  return Array.from(digest.subarray(0, length), (byte) => alphabet[byte % alphabet.length]).join("");
}

/** Whether both make the same pods, whatever set they belong to. */
export function isSameTemplate(left: PodTemplateSpec, right: PodTemplateSpec): boolean {
  return JSON.stringify(sorted(withoutHash(left))) === JSON.stringify(sorted(withoutHash(right)));
}

function withoutHash(template: PodTemplateSpec): PodTemplateSpec {
  const { [templateHashLabel]: _, ...labels } = template.metadata?.labels ?? {};
  return { ...template, metadata: { ...template.metadata, labels } };
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isObject(value)) return value;
  const keys = Object.keys(value).sort();
  return keys.map((key) => [key, sorted(value[key])]);
}
