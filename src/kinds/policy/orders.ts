// Orders about policies that come by a call: how they are kept on the policy, and read from it again by the
// next krane. What is kept is a message of the stream with the version that the order stands on, so that a
// replay of what it replaced does not undo it, before a restart or after. The rules are kept with it:
// what an edit has made of those on the object is not what was ordered.
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import type { DesiredMessage } from "../../engine/desired-message.ts";
import { invalidOrder } from "../../engine/order-problems.ts";
import {
  type ApplyCiliumNetworkPolicy,
  type CiliumNetworkPolicyState,
  CiliumNetworkPolicyStateSchema,
} from "../../gen/ctrl/v1/cilium_network_policy_pb.ts";
import { openOrder, orderTextMax, sealOrder } from "../../model/kept-order.ts";
import { readApplyPolicy, readPolicyState } from "./messages.ts";
import type { PolicyProjection } from "./projections.ts";
import type { PolicyNamespaceRules, PolicySpec } from "./spec.ts";

/** `versionOf`: the version of what is known about a key. */
export function readPolicyOrder(
  message: ApplyCiliumNetworkPolicy,
  versionOf: (key: string) => bigint,
  rules: PolicyNamespaceRules,
): DesiredMessage<PolicySpec> {
  const read = readApplyPolicy(message, 0n, rules);
  if (read.want.kind !== "apply") return read;
  const version = versionOf(read.key);
  const state = create(CiliumNetworkPolicyStateSchema, { version, state: { case: "apply", value: message } });
  const text = sealOrder(toBinary(CiliumNetworkPolicyStateSchema, state), "");
  if (text.length > orderTextMax) return invalidOrder(read, "policy", "is too long to be kept");
  return { ...read, version, want: { kind: "apply", spec: { ...read.want.spec, kept: { text } } } };
}

/** The order that made a live policy; undefined where it does not tell, or tells of another one. */
export function restorePolicyOrder(
  { namespace, name, policyId, ordered }: PolicyProjection,
  rules: PolicyNamespaceRules,
): DesiredMessage<PolicySpec> | undefined {
  if (ordered?.text === undefined) return undefined;
  const { text } = ordered;
  const state = stateOf(openOrder(text, ""));
  const read = state && readPolicyState(state, rules);
  if (read?.kind !== "message") return undefined;
  const { message } = read;
  if (message.key !== `${namespace}/${name}` || message.id !== policyId) return undefined;
  if (message.want.kind !== "apply") return message;
  return { ...message, want: { kind: "apply", spec: { ...message.want.spec, kept: { text } } } };
}

function stateOf(bytes: Uint8Array | undefined): CiliumNetworkPolicyState | undefined {
  try {
    return bytes && fromBinary(CiliumNetworkPolicyStateSchema, bytes);
  } catch {
    return undefined;
  }
}
