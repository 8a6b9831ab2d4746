// Compares the manifests of policies with the golden files in testdata/policy.
import assert from "node:assert/strict";
import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { testGoldenManifests } from "../../../test/support/golden-manifests.ts";
import { jsonBytes } from "../../../test/support/policy-messages.ts";
import { ApplyCiliumNetworkPolicySchema } from "../../gen/ctrl/v1/cilium_network_policy_pb.ts";
import { describeProblems } from "../../model/field-problem.ts";
import { desiredNamespace } from "../../model/namespace.ts";
import { desiredPolicy } from "./desired.ts";
import { parseApplyPolicy } from "./spec.ts";

interface GoldenInput {
  readonly about: string;
  readonly apply: JsonValue;
  /** Bytes in the message; readable JSON in the file. */
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
