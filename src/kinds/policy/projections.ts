// What krane remembers of a live policy that came from the control plane.
import type { KubeObject, ObjectMeta } from "../../kube/types.ts";
import { type OrderMark, readOrderMark } from "../../model/kept-order.ts";
import { annotationKeys, components, fieldManager, labelKeys } from "../../model/labels.ts";
import { finalizersOf } from "../../model/obstacle.ts";
import { judgeIdentity, judgeOwnership, type Ownership } from "../../model/ownership.ts";

export interface PolicyProjection {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly ownership: Ownership;
  /** Undefined where the label is gone or was written by somebody else than krane. */
  readonly policyId: string | undefined;
  readonly manifestHash: string | undefined;
  /** RFC 3339, as Kubernetes writes it. */
  readonly createdAt: string | undefined;
  readonly deleting: boolean;
  /** Absent on what the stream brought. */
  readonly ordered?: OrderMark;
  /** The finalizers that its deletion waits for. */
  readonly heldBy?: string;
}

export function projectPolicy({ metadata }: KubeObject): PolicyProjection {
  const heldBy = finalizersOf(metadata);
  const ordered = readOrderMark(metadata, "");
  return {
    namespace: metadata?.namespace ?? "",
    name: metadata?.name ?? "",
    uid: metadata?.uid ?? "",
    ownership: isOfControlPlane(metadata) ? judgeOwnership(metadata) : withoutId,
    policyId: appliedId(metadata),
    manifestHash: metadata?.annotations?.[annotationKeys.manifestHash],
    createdAt: metadata?.creationTimestamp,
    deleting: metadata?.deletionTimestamp !== undefined,
    ...(heldBy !== undefined && { heldBy }),
    ...(ordered !== undefined && { ordered }),
  };
}

/** A policy whose id was edited belongs to whoever the control plane gives its name to: the edit is drift. */
export function judgePolicy({ ownership, policyId }: PolicyProjection, wanted: string): Ownership {
  return policyId === undefined
    ? ownership
    : judgeIdentity(ownership, { what: "policy id", live: policyId, wanted });
}

// krane also applies policies that guard environments and sentinels. They carry its label and its field
// manager, but neither this component nor the id of a policy, and no message about policies may touch them.
const withoutId: Ownership = { kind: "foreign", reason: `label ${labelKeys.networkPolicyId} is absent` };

/** Either mark is enough, so that an edit of the other is seen as one. */
function isOfControlPlane(metadata: ObjectMeta | undefined): boolean {
  const labels = metadata?.labels ?? {};
  return (
    labels[labelKeys.networkPolicyId] !== undefined ||
    labels[labelKeys.component] === components.ciliumNetworkPolicy
  );
}

/**
 * A policy has nothing immutable to know it by, only this label, which anybody can edit. Server-side
 * apply tells the two apart: whoever edits a field takes it out of krane's record of what it applied.
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
