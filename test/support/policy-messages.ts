// A policy that is right in every field, for tests that make one thing about it special.
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  type ApplyCiliumNetworkPolicy,
  ApplyCiliumNetworkPolicySchema,
} from "../../src/gen/ctrl/v1/cilium_network_policy_pb.ts";
import { type PolicySpec, parseApplyPolicy } from "../../src/kinds/policy/spec.ts";
import { describeProblems } from "../../src/model/field-problem.ts";
import { utf8 } from "./deployment-messages.ts";

type Overrides = Exclude<MessageInitShape<typeof ApplyCiliumNetworkPolicySchema>, ApplyCiliumNetworkPolicy>;

/** Lets the sentinels of one environment reach one deployment. */
export const policyDocument = {
  apiVersion: "cilium.io/v2",
  kind: "CiliumNetworkPolicy",
  metadata: { name: "ignored", namespace: "ignored" },
  spec: {
    endpointSelector: { matchLabels: { "unkey.com/deployment.id": "d_1a2B3c4D" } },
    ingress: [
      {
        fromEndpoints: [
          {
            matchLabels: {
              "io.kubernetes.pod.namespace": "sentinel",
              "unkey.com/workspace.id": "ws_1a2B3c4D",
              "unkey.com/environment.id": "env_1a2B3c4D",
            },
          },
        ],
        toPorts: [{ ports: [{ port: "8080", protocol: "TCP" }] }],
      },
    ],
  },
};

export function applyPolicy(overrides: Overrides = {}): ApplyCiliumNetworkPolicy {
  return create(ApplyCiliumNetworkPolicySchema, {
    k8sNamespace: "acme",
    k8sName: "sentinel-ingress-to-web",
    ciliumNetworkPolicyId: "net_1a2B3c4D",
    policy: jsonBytes(policyDocument),
    ...overrides,
  });
}

export function policySpec(overrides: Overrides = {}): PolicySpec {
  const parsed = parseApplyPolicy(applyPolicy(overrides), {});
  if (parsed.kind === "invalid") throw new Error(describeProblems(parsed.problems));
  return parsed.spec;
}

export function jsonBytes(value: unknown): Uint8Array<ArrayBuffer> {
  return utf8(JSON.stringify(value));
}
