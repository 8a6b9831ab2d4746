// A short hash of chosen fields of an object, equal for equal content whatever the order of the
// keys. It is how drift is seen for kinds that keep no generation.
import { createHash } from "node:crypto";

export interface ContentHashOptions {
  /** Paths of what is hashed, e.g. ["metadata", "labels"]. A field that is absent counts as absent. */
  readonly fields: readonly (readonly string[])[];
  /** Parts to leave out, such as an annotation that a controller of Kubernetes keeps writing. */
  readonly ignore?: (path: readonly string[]) => boolean;
}

// 96 bits: no two states of one object meet by accident, in 16 characters per cached object.
const hashBytes = 12;

export function createContentHash(options: ContentHashOptions): (object: unknown) => string {
  const { fields, ignore = () => false } = options;
  return (object) => {
    const parts = fields.map((path) => canonical(valueAt(object, path), path, ignore) ?? "");
    return createHash("sha256").update(parts.join("\n")).digest().toString("base64url", 0, hashBytes);
  };
}

function valueAt(object: unknown, path: readonly string[]): unknown {
  let value = object;
  for (const name of path) value = isRecord(value) ? value[name] : undefined;
  return value;
}

/** JSON with sorted keys; undefined where there is nothing, as JSON.stringify has it. */
function canonical(
  value: unknown,
  path: readonly string[],
  ignore: (path: readonly string[]) => boolean,
): string | undefined {
  if (value === undefined || ignore(path)) return undefined;
  if (Array.isArray(value)) {
    return `[${value.map((item, index) => canonical(item, [...path, String(index)], ignore) ?? "null").join()}]`;
  }
  if (!isRecord(value)) return JSON.stringify(value);
  const members: string[] = [];
  for (const name of Object.keys(value).sort()) {
    const member = canonical(value[name], [...path, name], ignore);
    if (member !== undefined) members.push(`${JSON.stringify(name)}:${member}`);
  }
  return `{${members.join()}}`;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
