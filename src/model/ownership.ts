// Whose a live object is (K4). krane writes and deletes only what carries its label *and* was applied
// by its field manager: the label alone can be copied by a careless manifest, the manager alone is
// left behind on objects that an operator took out of krane's hands by removing the label.

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
 * An object of ours under the wanted name may stand for another id, when the control plane gives a
 * name out twice. Selectors are immutable, so applying onto it could only fail, and adopting it
 * would hand one deployment's pods to another.
 */
export function judgeIdentity(
  ownership: Ownership,
  id: { readonly what: string; readonly live: string | undefined; readonly wanted: string },
): Ownership {
  if (ownership.kind !== "ours" || id.live === id.wanted) return ownership;
  const seen = id.live === undefined ? "has no id" : `is ${quote(id.live)}`;
  return { kind: "other-id", reason: `the live ${id.what} ${seen}, wanted is ${quote(id.wanted)}` };
}

/** Older agents left the managed-by label off the gossip objects of sentinels; their ids tell whose they are. */
function isOriginalGossip(labels: Readonly<Record<string, string>>): boolean {
  return (
    labels[labelKeys.managedBy] === undefined &&
    labels[labelKeys.component] === components.gossipLan &&
    labels[labelKeys.sentinelId] !== undefined
  );
}

/** A manager that only wrote the status, or only updated, did not make the object. */
function isOwnApply(entry: ManagedFieldsEntry): boolean {
  return entry.manager === fieldManager && entry.operation === "Apply" && !entry.subresource;
}
