// The parts of a live policy that krane caches, and the check that the policy is one that the control plane asked for.
import { ciliumNetworkPolicies } from "../../kube/resources.ts";
import type { KubeObject, ObjectMeta } from "../../kube/types.ts";
import { components, fieldManager, labelKeys } from "../../model/labels.ts";
import { manifestHashOf } from "../../model/manifest-hash.ts";
import { finalizersOf } from "../../model/obstacle.ts";
import { judgeIdentity, judgeOwnership, type Ownership } from "../../model/ownership.ts";
import type { Seal } from "../../model/seal.ts";

export interface PolicyProjection {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly ownership: Ownership;
  /** From the seal; without one from the label, and undefined if that is missing or was not written by krane. */
  readonly policyId: string | undefined;
  readonly manifestHash: string | undefined;
  /** RFC 3339, as Kubernetes writes it. */
  readonly createdAt: string | undefined;
  readonly deleting: boolean;
  /** The finalizers that its deletion waits for. */
  readonly heldBy?: string;
}

export function projectPolicy({ metadata }: KubeObject, seal: Seal): PolicyProjection {
  const reading = seal.read(ciliumNetworkPolicies, metadata);
  const isSealed = reading.kind === "valid";
  const isOfControlPlane = isSealed ? reading.ids.id !== undefined : hasPolicyLabels(metadata);
  const heldBy = finalizersOf(metadata);
  return {
    namespace: metadata?.namespace ?? "",
    name: metadata?.name ?? "",
    uid: metadata?.uid ?? "",
    ownership: isOfControlPlane ? judgeOwnership(reading, metadata) : withoutId,
    policyId: isSealed ? reading.ids.id : appliedId(metadata),
    manifestHash: manifestHashOf({ metadata }),
    createdAt: metadata?.creationTimestamp,
    deleting: metadata?.deletionTimestamp !== undefined,
    ...(heldBy !== undefined && { heldBy }),
  };
}

/** A policy with an edited id belongs to the policy that the control plane gives its name to: the edit is drift. */
export function judgePolicy({ ownership, policyId }: PolicyProjection, wanted: string): Ownership {
  return policyId === undefined
    ? ownership
    : judgeIdentity(ownership, { what: "policy id", live: policyId, wanted });
}

/**
 * For the policies that krane applies to protect objects of other kinds. They are krane's, but have neither this
 * component nor a policy id, and no policy message may change them.
 */
const withoutId: Ownership = { kind: "foreign", reason: `label ${labelKeys.networkPolicyId} is absent` };

/** Either label is enough, so that an edit of the other is detected as drift. */
function hasPolicyLabels(metadata: ObjectMeta | undefined): boolean {
  const labels = metadata?.labels ?? {};
  return (
    labels[labelKeys.networkPolicyId] !== undefined ||
    labels[labelKeys.component] === components.ciliumNetworkPolicy
  );
}

/**
 * An unsealed policy has no immutable field to identify it, only this label, which anyone can edit. Server-side apply
 * reveals an edit: it removes the edited field from those that krane's field manager owns.
 */
function appliedId(metadata: ObjectMeta | undefined): string | undefined {
  const isOwn = (metadata?.managedFields ?? []).some(
    ({ manager, operation, fieldsV1 }) =>
      manager === fieldManager && operation === "Apply" && recordsId(fieldsV1),
  );
  return isOwn ? metadata?.labels?.[labelKeys.networkPolicyId] : undefined;
}

interface LabelRecord {
  readonly "f:metadata"?: { readonly "f:labels"?: Readonly<Record<string, unknown>> };
}

function recordsId(fields: unknown): boolean {
  const labels = (fields as LabelRecord | undefined)?.["f:metadata"]?.["f:labels"] ?? {};
  return `f:${labelKeys.networkPolicyId}` in labels;
}
