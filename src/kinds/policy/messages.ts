// What a message about a policy says: which key it is about, and what is wanted of it.

import {
  applyMessage,
  type DesiredMessage,
  deleteMessage,
  type ReadState,
  readState,
} from "../../engine/desired-message.ts";
import type {
  ApplyCiliumNetworkPolicy,
  CiliumNetworkPolicyState,
  DeleteCiliumNetworkPolicy,
} from "../../gen/ctrl/v1/cilium_network_policy_pb.ts";
import { type PolicyNamespaceRules, type PolicySpec, parseApplyPolicy, parseDeletePolicy } from "./spec.ts";

export function readPolicyState(
  state: CiliumNetworkPolicyState,
  rules: PolicyNamespaceRules,
): ReadState<PolicySpec> {
  return readState<ApplyCiliumNetworkPolicy, DeleteCiliumNetworkPolicy, PolicySpec>(state, {
    apply: (message, version) => readApplyPolicy(message, version, rules),
    delete: (message, version) => readDeletePolicy(message, version, rules),
  });
}

export function readApplyPolicy(
  message: ApplyCiliumNetworkPolicy,
  version: bigint,
  rules: PolicyNamespaceRules,
): DesiredMessage<PolicySpec> {
  const about = { key: keyOf(message), id: message.ciliumNetworkPolicyId, version };
  return applyMessage(about, parseApplyPolicy(message, rules));
}

export function readDeletePolicy(
  message: DeleteCiliumNetworkPolicy,
  version: bigint,
  rules: PolicyNamespaceRules,
): DesiredMessage<PolicySpec> {
  return deleteMessage({ key: keyOf(message), version }, parseDeletePolicy(message, rules));
}

type Named = Pick<ApplyCiliumNetworkPolicy, "k8sNamespace" | "k8sName">;

function keyOf({ k8sNamespace, k8sName }: Named): string {
  return `${k8sNamespace}/${k8sName}`;
}
