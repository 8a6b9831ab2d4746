// The refusal of an apply that would take fields from others, in the real server's words.
import { printPath } from "./apply/path-element.ts";
import type { FieldConflict } from "./apply/updater.ts";
import { StatusError } from "./status-error.ts";

export function applyConflict(conflicts: readonly FieldConflict[]): StatusError {
  const causes = conflicts.map(({ owner, path }) => ({
    reason: "FieldManagerConflict",
    message: `conflict with ${printOwner(owner)}`,
    field: printPath(path),
  }));
  return new StatusError(409, "Conflict", conflictMessage(conflicts), { causes });
}

function conflictMessage(conflicts: readonly FieldConflict[]): string {
  const [first] = conflicts;
  if (conflicts.length === 1 && first !== undefined) {
    return `Apply failed with 1 conflict: conflict with ${printOwner(first.owner)}: ${printPath(first.path)}`;
  }
  const byOwner = new Map<string, string[]>();
  for (const { owner, path } of conflicts) {
    const shown = printOwner(owner);
    byOwner.set(shown, [...(byOwner.get(shown) ?? []), `- ${printPath(path)}`]);
  }
  const lines = [...byOwner].flatMap(([owner, paths]) => [`conflicts with ${owner}:`, ...paths]);
  return `Apply failed with ${conflicts.length} conflicts: ${lines.join("\n")}`;
}

function printOwner(owner: FieldConflict["owner"]): string {
  const place = owner.subresource === "" ? "" : ` with subresource ${JSON.stringify(owner.subresource)}`;
  const version = owner.operation === "Update" ? ` using ${owner.apiVersion}` : "";
  return `${JSON.stringify(owner.manager)}${place}${version}`;
}
