// The manifests of a policy of the control plane, in testdata/policy.
import assert from "node:assert/strict";
import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { testGoldenManifests } from "../../../test/support/golden-manifests.ts";
import { jsonBytes } from "../../../test/support/policy-messages.ts";
import { ApplyCiliumNetworkPolicySchema } from "../../gen/ctrl/v1/cilium_network_policy_pb.ts";
import { describeProblems } from "../../model/field-problem.ts";
import { desiredNamespace } from "../../model/names.ts";
import { desiredPolicy } from "./desired.ts";
import { parseApplyPolicy } from "./spec.ts";

interface GoldenInput {
  /** What the case is about. */
  readonly about: string;
  readonly apply: JsonValue;
  /** What the message carries as bytes stands here so that it can be read. */
  readonly policy: JsonValue;
}

function manifestsOf(input: GoldenInput): readonly unknown[] {
  const message = fromJson(ApplyCiliumNetworkPolicySchema, input.apply);
  message.policy = jsonBytes(input.policy);
  const parsed = parseApplyPolicy(message, {});
  assert.ok(parsed.kind === "valid", parsed.kind === "invalid" ? describeProblems(parsed.problems) : "");
  return [desiredNamespace(parsed.spec.namespace), desiredPolicy(parsed.spec)];
}

testGoldenManifests("policy", 6, manifestsOf);
