// Rejects changes to fields that are fixed while an object is desired: its owner, and its place in the cluster.
//
// - The secrets of a deployment are encrypted for its environment. Moved to another one, its next pods could not
//   decrypt them.
// - Selectors, labels and network policies are derived from these fields. Under another name or namespace, the
//   previous object would be left behind in the cluster, still running.

import type { ApplyMessage, KindName } from "../../kinds/kinds.ts";
import { quote } from "../../model/field-problem.ts";
import type { Row } from "../store.ts";
import { checked } from "./bad-request.ts";

// By their names in the .proto files, in the order of a document.
const keptFields = [
  ["workspace_id", "workspaceId"],
  ["project_id", "projectId"],
  ["environment_id", "environmentId"],
  ["k8s_namespace", "k8sNamespace"],
  ["k8s_name", "k8sName"],
] as const;

/** Throws with every field that would change. A stopped or unreadable object is replaced as a whole. */
export function checkKeptFields<K extends KindName>(
  kind: K,
  row: Row<K> | undefined,
  spec: ApplyMessage<K>,
): void {
  if (row?.desired !== "running") return;
  // Each kind has some of them.
  const before = row.spec as Partial<Record<string, unknown>>;
  const after = spec as Partial<Record<string, unknown>>;
  checked((refuse) => {
    for (const [path, field] of keptFields) {
      const value = before[field];
      if (typeof value !== "string" || value === after[field]) continue;
      refuse(`${kind}.${path}`, `must stay ${quote(value)} while ${kind} ${row.id} exists; use a new id`);
    }
  });
}
