// Decides whether a live object belongs to krane (K4). Only the seal proves it. Krane's label and field manager, which
// anybody can write, are marks: they show that an object without a seal may come from an older krane, and it is taken
// over only where desired state names it.

import type { ManagedFieldsEntry, ObjectMeta } from "../kube/types.ts";
import { quote } from "./field-problem.ts";
import { components, fieldManager, labelKeys, managedBy } from "./labels.ts";
import type { SealReading } from "./seal.ts";

export type Ownership =
  | {
      readonly kind: "ours";
      /** Sealed with an older key, so it is sealed again. */
      readonly isOutdated: boolean;
      /** Taken over, not created by krane. */
      readonly isAdopted: boolean;
      /** The older key. */
      readonly keyId?: string;
    }
  /**
   * It has krane's marks but no valid seal. If desired state names it, krane adopts it, and an explicit Delete counts.
   * Its absence upstream does not delete it.
   */
  | { readonly kind: "unsealed"; readonly reason: string }
  | {
      readonly kind: "foreign";
      readonly reason: string;
      /** What is wrong with its seal; absent if it has none, or if that is not the reason. */
      readonly seal?: ForeignSeal;
    }
  | { readonly kind: "other-id"; readonly reason: string };

/** "broken": edited, or made for another object or cluster. */
export type ForeignSeal = "other-key" | "other-region" | "broken";

/** An object that krane does not touch. */
export type Stranger = Extract<Ownership, { readonly kind: "foreign" | "other-id" }>;

const noSeal: Ownership = { kind: "unsealed", reason: "it has no seal" };
const brokenSeal: Ownership = { kind: "unsealed", reason: "its seal is not valid" };
const stripped: Ownership = { kind: "unsealed", reason: "its seal and krane's marks were removed" };

// Constants, because nearly every cached object refers to one.
const created: Ownership = { kind: "ours", isOutdated: false, isAdopted: false };
const adopted: Ownership = { kind: "ours", isOutdated: false, isAdopted: true };

/**
 * `hasFixedMark`: a field that nobody can edit marks it as krane's. It counts where there is no seal. An object with a broken
 * one may be restored from another cluster, and a person decides.
 */
export function judgeOwnership(
  reading: SealReading,
  metadata: ObjectMeta | undefined,
  hasFixedMark = false,
): Ownership {
  switch (reading.kind) {
    case "valid":
      if (reading.isCurrent) return reading.isAdopted ? adopted : created;
      return { kind: "ours", isOutdated: true, isAdopted: reading.isAdopted, keyId: reading.keyId };
    case "other-key":
      return foreign("other-key", `it is sealed with the unknown key ${quote(reading.keyId)}`);
    case "other-region":
      return foreign("other-region", `it belongs to the region ${quote(reading.region)}`);
    case "missing":
      return (hasFixedMark ? undefined : judgeMarks(metadata)) ?? noSeal;
    case "broken": {
      const stranger = judgeMarks(metadata);
      return stranger === undefined
        ? brokenSeal
        : foreign("broken", `its seal is not valid, and ${stranger.reason}`);
    }
  }
}

/**
 * What the same object, by its uid, is now: one that had a valid seal before stays krane's if somebody removes the seal and
 * all marks at once. The seal of another krane counts: a person may have let that one adopt it.
 */
export function rememberOwnership(now: Ownership, before: Ownership): Ownership {
  if (now.kind !== "foreign" || (now.seal !== undefined && now.seal !== "broken")) return now;
  return before.kind === "ours" || before === stripped ? stripped : now;
}

/** Whether krane may write to an object that desired state names: it is krane's, or it can be adopted. */
export function isClaimable(ownership: Ownership): ownership is Exclude<Ownership, Stranger> {
  return ownership.kind === "ours" || ownership.kind === "unsealed";
}

/**
 * An object of krane's with the desired name may belong to another id, if the control plane uses a name twice. Selectors
 * are immutable, so applying over it would fail, and adopting it would give one deployment's pods to another.
 */
export function judgeIdentity(
  ownership: Ownership,
  id: { readonly what: string; readonly live: string | undefined; readonly wanted: string },
): Ownership {
  if (!isClaimable(ownership) || id.live === id.wanted) return ownership;
  const seen = id.live === undefined ? "has no id" : `is ${quote(id.live)}`;
  return { kind: "other-id", reason: `the live ${id.what} ${seen}, but ${quote(id.wanted)} is desired` };
}

function foreign(seal: ForeignSeal, reason: string): Ownership {
  return { kind: "foreign", reason, seal };
}

/** Undefined if the object has krane's marks. */
function judgeMarks(metadata: ObjectMeta | undefined): Stranger | undefined {
  const labels = metadata?.labels ?? {};
  const label = labels[labelKeys.managedBy];
  if (label !== managedBy && !isOriginalGossip(labels)) {
    const seen = label === undefined ? "is absent" : `is ${quote(label)}`;
    return { kind: "foreign", reason: `label ${labelKeys.managedBy} ${seen}` };
  }
  if (!(metadata?.managedFields ?? []).some(isOwnApply)) {
    return { kind: "foreign", reason: `field manager ${fieldManager} never applied it` };
  }
  return undefined;
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
