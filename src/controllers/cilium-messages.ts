// What a message about a policy says: which key it is about, and what is wanted of it.
import type {
  ApplyCiliumNetworkPolicy,
  CiliumNetworkPolicyState,
  DeleteCiliumNetworkPolicy,
} from "../gen/ctrl/v1/cilium_network_policy_pb.ts";
import {
  type PolicyNamespaceRules,
  type PolicySpec,
  parseApplyPolicy,
  parseDeletePolicy,
} from "../model/cilium/spec.ts";
import { type DesiredMessage, messageKey, type ReadState } from "./desired-message.ts";

export function readPolicyState(
  state: CiliumNetworkPolicyState,
  rules: PolicyNamespaceRules,
): ReadState<PolicySpec> {
  const { version } = state;
  switch (state.state.case) {
    case "apply":
      return { kind: "message", message: readApplyPolicy(state.state.value, version, rules) };
    case "delete":
      return { kind: "message", message: readDeletePolicy(state.state.value, version, rules) };
    default:
      return { kind: "bare", version, unreadable: (state.$unknown ?? []).length > 0 };
  }
}

export function readApplyPolicy(
  message: ApplyCiliumNetworkPolicy,
  version: bigint,
  rules: PolicyNamespaceRules,
): DesiredMessage<PolicySpec> {
  const parsed = parseApplyPolicy(message, rules);
  const id = message.ciliumNetworkPolicyId === "" ? undefined : message.ciliumNetworkPolicyId;
  if (parsed.kind === "valid") {
    return { key: keyOf(message), id, version, want: { kind: "apply", spec: parsed.spec } };
  }
  const { problems } = parsed;
  return { key: messageKey(keyOf(message), problems), id, version, want: { kind: "invalid", problems } };
}

export function readDeletePolicy(
  message: DeleteCiliumNetworkPolicy,
  version: bigint,
  rules: PolicyNamespaceRules,
): DesiredMessage<PolicySpec> {
  const parsed = parseDeletePolicy(message, rules);
  if (parsed.kind === "valid") {
    return { key: keyOf(message), id: undefined, version, want: { kind: "delete" } };
  }
  const { problems } = parsed;
  return {
    key: messageKey(keyOf(message), problems),
    id: undefined,
    version,
    want: { kind: "invalid", problems },
  };
}

type Named = Pick<ApplyCiliumNetworkPolicy, "k8sNamespace" | "k8sName">;

function keyOf({ k8sNamespace, k8sName }: Named): string {
  return `${k8sNamespace}/${k8sName}`;
}
