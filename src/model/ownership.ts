// Decides whether a live object belongs to krane (K4). krane writes and deletes only objects that have its label *and*
// were applied by its field manager. The label alone may be copied into another manifest; the manager alone stays on
// objects that an operator detached from krane by removing the label.

import type { ManagedFieldsEntry, ObjectMeta } from "../kube/types.ts";
import { quote } from "./field-problem.ts";
import { components, fieldManager, labelKeys, managedBy } from "./labels.ts";

export type Ownership =
  | { readonly kind: "ours" }
  | { readonly kind: "foreign"; readonly reason: string }
  | { readonly kind: "other-id"; readonly reason: string };

const ours: Ownership = { kind: "ours" };

export function judgeOwnership(metadata: ObjectMeta | undefined): Ownership {
  const labels = metadata?.labels ?? {};
  const label = labels[labelKeys.managedBy];
  if (label !== managedBy && !isOriginalGossip(labels)) {
    const seen = label === undefined ? "is absent" : `is ${quote(label)}`;
    return { kind: "foreign", reason: `label ${labelKeys.managedBy} ${seen}` };
  }
  if (!(metadata?.managedFields ?? []).some(isOwnApply)) {
    return { kind: "foreign", reason: `field manager ${fieldManager} never applied it` };
  }
  return ours;
}

/**
 * An object of krane's with the desired name may belong to another id, if the control plane uses a name twice. Selectors
 * are immutable, so applying over it would fail, and adopting it would give one deployment's pods to another.
 */
export function judgeIdentity(
  ownership: Ownership,
  id: { readonly what: string; readonly live: string | undefined; readonly wanted: string },
): Ownership {
  if (ownership.kind !== "ours" || id.live === id.wanted) return ownership;
  const seen = id.live === undefined ? "has no id" : `is ${quote(id.live)}`;
  return { kind: "other-id", reason: `the live ${id.what} ${seen}, but ${quote(id.wanted)} is desired` };
}

/** Older agents did not set the managed-by label on the gossip objects of sentinels; the sentinel's id identifies them. */
function isOriginalGossip(labels: Readonly<Record<string, string>>): boolean {
  return (
    labels[labelKeys.managedBy] === undefined &&
    labels[labelKeys.component] === components.gossipLan &&
    labels[labelKeys.sentinelId] !== undefined
  );
}

/** A manager that only wrote the status, or only updated the object, did not create it. */
function isOwnApply(entry: ManagedFieldsEntry): boolean {
  return entry.manager === fieldManager && entry.operation === "Apply" && !entry.subresource;
}
