// What krane asks of Kubernetes for a sentinel, case by case, as files that a person can read and compare.
// Each case is a folder in testdata/sentinel: input.json is a message with krane's settings,
// manifests.json what it becomes, in the order of applying. UPDATE_GOLDEN=1 writes the latter anew; read
// the difference.
//
// The same manifests are sent to a real API server in test/cluster.
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { ApplySentinelSchema } from "../../gen/ctrl/v1/sentinel_pb.ts";
import { describeProblems } from "../field-problem.ts";
import { desiredSentinel, type SentinelSettings } from "./desired.ts";
import { parseApplySentinel } from "./spec.ts";

interface GoldenInput {
  /** What the case is about. */
  readonly about: string;
  readonly apply: JsonValue;
  readonly settings?: {
    readonly region: string;
    readonly registry?: { readonly host: string; readonly username: string; readonly password: string };
  };
}

// Stands for the uid that the API server gives the apps/v1 Deployment.
const deploymentUid = "11111111-2222-4333-8444-555555555555";
const folder = fileURLToPath(new URL("../../../testdata/sentinel/", import.meta.url));
const cases = readdirSync(folder).sort();

function manifestsOf(input: GoldenInput): unknown {
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

test("there are golden manifests", () => {
  assert.ok(cases.length >= 10, `${cases.length} cases`);
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
