// What krane asks of Kubernetes for a policy of the control plane, case by case. Each case is a folder in
// testdata/policy: input.json is a message with its document, manifests.json what it becomes, in the
// order of applying. UPDATE_GOLDEN=1 writes the latter anew; read the difference.
//
// The same manifests are sent to a real API server in test/cluster.
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { jsonBytes } from "../../../test/support/policy-messages.ts";
import { ApplyCiliumNetworkPolicySchema } from "../../gen/ctrl/v1/cilium_network_policy_pb.ts";
import { describeProblems } from "../field-problem.ts";
import { desiredNamespace } from "../namespace.ts";
import { desiredPolicy } from "./desired.ts";
import { parseApplyPolicy } from "./spec.ts";

interface GoldenInput {
  /** What the case is about. */
  readonly about: string;
  readonly apply: JsonValue;
  /** What the message carries as bytes stands here so that it can be read. */
  readonly policy: JsonValue;
}

const folder = fileURLToPath(new URL("../../../testdata/policy/", import.meta.url));
const cases = readdirSync(folder).sort();

function manifestsOf(input: GoldenInput): unknown {
  const message = fromJson(ApplyCiliumNetworkPolicySchema, input.apply);
  message.policy = jsonBytes(input.policy);
  const parsed = parseApplyPolicy(message, {});
  assert.ok(parsed.kind === "valid", parsed.kind === "invalid" ? describeProblems(parsed.problems) : "");
  return [desiredNamespace(parsed.spec.namespace), desiredPolicy(parsed.spec)];
}

test("there are golden manifests", () => {
  assert.ok(cases.length >= 6, `${cases.length} cases`);
});

for (const name of cases) {
  test(`the manifests of ${name} are those in testdata`, () => {
    const input: GoldenInput = JSON.parse(readFileSync(`${folder}${name}/input.json`, "utf8"));
    const file = `${folder}${name}/manifests.json`;
    const text = `${JSON.stringify(manifestsOf(input), undefined, 2)}\n`;
    if (process.env["UPDATE_GOLDEN"] === "1") writeFileSync(file, text);
    assert.ok(existsSync(file), "no manifests.json; UPDATE_GOLDEN=1 writes it");
    assert.equal(text, readFileSync(file, "utf8"));
  });
}
