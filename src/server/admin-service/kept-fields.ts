// What of an object cannot change while it is wanted: whom it belongs to, and where in the cluster it is.
//
// - The secrets of a deployment are encrypted for its environment. Moved to another one, its next pods could not
//   decrypt them.
// - Selectors, labels and network policies are made of these. Under another name or namespace the object of before
//   would be left behind in the cluster, and run on.

import type { ApplyMessage, KindName } from "../../kinds/kinds.ts";
import { quote } from "../../model/field-problem.ts";
import type { Row } from "../store.ts";
import { checked } from "./bad-request.ts";

// By the names that the .proto files give them, in the order of a person's description.
const keptFields = [
  ["workspace_id", "workspaceId"],
  ["project_id", "projectId"],
  ["environment_id", "environmentId"],
  ["k8s_namespace", "k8sNamespace"],
  ["k8s_name", "k8sName"],
] as const;

/** Throws with every field that would change. What is stopped, or cannot be read, is replaced as a whole. */
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
      refuse(
        `${kind}.${path}`,
        `must stay ${quote(value)} as long as ${kind} ${row.id} is wanted: give what you apply a new id`,
      );
    }
  });
}
