// Rejects unknown fields. If a mistyped field were skipped, its default would silently apply.
import { type NamedChoice, nearestName } from "../config/nearest-key.ts";
import { quote, type Refuse } from "../model/field-problem.ts";
import type { SourceMap } from "./source-tree.ts";

export function refuseUnknown(
  map: SourceMap,
  path: string,
  known: readonly NamedChoice[],
  refuse: Refuse,
): void {
  for (const key of map.entries.keys()) {
    if (known.some(({ name }) => name === key)) continue;
    const near = nearestName(key, known);
    const remedy =
      near === undefined ? `these are: ${known.map(({ name }) => name).join(", ")}` : `did you mean ${near}?`;
    refuse(memberPath(path, key), `is not a known field; ${remedy}`);
  }
}

function memberPath(path: string, key: string): string {
  if (!/^[A-Za-z0-9_-]{1,60}$/.test(key)) return `${path}[${quote(key)}]`;
  return path === "" ? key : `${path}.${key}`;
}
