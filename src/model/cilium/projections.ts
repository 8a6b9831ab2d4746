// What krane remembers of a live policy that came from the control plane.
import type { KubeObject } from "../../kube/types.ts";
import { annotationKeys, labelKeys } from "../labels.ts";
import { judgeOwnership, type Ownership } from "../ownership.ts";

export interface PolicyProjection {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly ownership: Ownership;
  readonly policyId: string | undefined;
  readonly manifestHash: string | undefined;
  /** RFC 3339, as Kubernetes writes it. */
  readonly createdAt: string | undefined;
  readonly deleting: boolean;
}

export function projectPolicy({ metadata }: KubeObject): PolicyProjection {
  const policyId = metadata?.labels?.[labelKeys.networkPolicyId];
  return {
    namespace: metadata?.namespace ?? "",
    name: metadata?.name ?? "",
    uid: metadata?.uid ?? "",
    ownership: policyId === undefined ? withoutId : judgeOwnership(metadata),
    policyId,
    manifestHash: metadata?.annotations?.[annotationKeys.manifestHash],
    createdAt: metadata?.creationTimestamp,
    deleting: metadata?.deletionTimestamp !== undefined,
  };
}

// krane also applies policies that guard environments and sentinels. They carry its label and its field
// manager, but no id of a policy, and no message about policies may touch them.
const withoutId: Ownership = { kind: "foreign", reason: `label ${labelKeys.networkPolicyId} is absent` };
