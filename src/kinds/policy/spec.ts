// Parses a message of the control plane to a trusted PolicySpec, or to the list of its problems. Trusted means that its
// name does not collide with krane's own policies and that krane may manage its namespace. Which pods it selects and
// what it admits is up to the control plane.
import type {
  ApplyCiliumNetworkPolicy,
  DeleteCiliumNetworkPolicy,
} from "../../gen/ctrl/v1/cilium_network_policy_pb.ts";
import { collectProblems, type ParsedMessage, quote, type Refuse } from "../../model/field-problem.ts";
import type { KeptOrder } from "../../model/kept-order.ts";
import { parseId } from "../../model/message-fields.ts";
import { isDns1123Label, isOwnPolicyName, type OwnNamespaces, refusedNamespace } from "../../model/names.ts";
import { type PolicyRules, parsePolicyDocument } from "./policy-document.ts";

export interface PolicySpec extends PolicyRef {
  readonly policyId: string;
  readonly rules: PolicyRules;
  /** Absent if it came from the control plane's stream. */
  readonly kept?: KeptOrder;
}

export interface PolicyRef {
  readonly namespace: string;
  readonly name: string;
}

const nameLengthMax = 253;
const dns1123Subdomain = /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*$/;

export function parseApplyPolicy(
  message: ApplyCiliumNetworkPolicy,
  rules: OwnNamespaces,
): ParsedMessage<PolicySpec> {
  return collectProblems((refuse) => ({
    ...parseRef(message, rules, refuse),
    policyId: parseId("cilium_network_policy_id", message.ciliumNetworkPolicyId, refuse),
    rules: parsePolicyDocument(message.policy, refuse),
  }));
}

/** The rules for names also apply to deletions. */
export function parseDeletePolicy(
  message: DeleteCiliumNetworkPolicy,
  rules: OwnNamespaces,
): ParsedMessage<PolicyRef> {
  return collectProblems((refuse) => parseRef(message, rules, refuse));
}

function parseRef(
  message: Pick<ApplyCiliumNetworkPolicy, "k8sNamespace" | "k8sName">,
  rules: OwnNamespaces,
  refuse: Refuse,
): PolicyRef {
  const { k8sNamespace: namespace, k8sName: name } = message;
  if (namespace === "") refuse("k8s_namespace", "is required");
  else if (!isDns1123Label(namespace)) {
    refuse("k8s_namespace", `must be a DNS label of at most 63 characters, but is ${quote(namespace)}`);
  } else {
    const reason = refusedNamespace(namespace, rules);
    if (reason !== undefined) refuse("k8s_namespace", `${quote(namespace)} ${reason}`);
  }
  if (name === "") refuse("k8s_name", "is required");
  else if (name.length > nameLengthMax || !dns1123Subdomain.test(name)) {
    refuse("k8s_name", `must be a DNS name of at most ${nameLengthMax} characters, but is ${quote(name)}`);
  } else if (isOwnPolicyName(namespace, name)) {
    refuse("k8s_name", `${quote(name)} is the name of a policy that krane makes by itself`);
  }
  return { namespace, name };
}
