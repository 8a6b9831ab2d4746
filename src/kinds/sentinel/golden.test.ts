// Compares the manifests of sentinels with the golden files in testdata/sentinel.
import assert from "node:assert/strict";
import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { testGoldenManifests } from "../../../test/support/golden-manifests.ts";
import { ApplySentinelSchema } from "../../gen/ctrl/v1/sentinel_pb.ts";
import { describeProblems } from "../../model/field-problem.ts";
import { desiredSentinel, type SentinelSettings } from "./desired.ts";
import { parseApplySentinel } from "./spec.ts";

interface GoldenInput {
  readonly about: string;
  readonly apply: JsonValue;
  readonly settings?: {
    readonly region: string;
    readonly registry?: { readonly host: string; readonly username: string; readonly password: string };
  };
}

// In place of the uid that the API server assigns to the apps/v1 Deployment.
const deploymentUid = "11111111-2222-4333-8444-555555555555";
function manifestsOf(input: GoldenInput): readonly unknown[] {
  const parsed = parseApplySentinel(fromJson(ApplySentinelSchema, input.apply), { registries: [] });
  assert.ok(parsed.kind === "valid", parsed.kind === "invalid" ? describeProblems(parsed.problems) : "");
  return desiredSentinel(parsed.spec, settingsOf(input), deploymentUid).map(({ manifest }) => manifest);
}

function settingsOf({ settings }: GoldenInput): SentinelSettings {
  const registry = settings?.registry;
  return {
    region: settings?.region ?? "us-east-1.aws",
    ...(registry && { registry: { ...registry, password: { reveal: () => registry.password } } }),
  };
}

testGoldenManifests("sentinel", 10, manifestsOf);
