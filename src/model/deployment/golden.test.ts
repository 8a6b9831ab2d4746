// What krane asks of Kubernetes, case by case, as files that a person can read and compare. Each case is
// a folder in testdata/deployment: input.json is a message with krane's settings, manifests.json what it
// becomes, in the order of applying. UPDATE_GOLDEN=1 writes the latter anew; read the difference.
//
// The same manifests are sent to a real API server in test/cluster.
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { utf8 } from "../../../test/support/deployment-messages.ts";
import { ApplyDeploymentSchema } from "../../gen/ctrl/v1/deployment_pb.ts";
import { describeProblems } from "../field-problem.ts";
import { type DeploymentSettings, desiredDeployment } from "./desired.ts";
import { parseApplyDeployment } from "./spec.ts";

interface GoldenInput {
  /** What the case is about. */
  readonly about: string;
  readonly apply: JsonValue;
  /** What the message carries as bytes stands here so that it can be read. */
  readonly healthcheck?: JsonValue;
  readonly secrets?: Readonly<Record<string, string>>;
  readonly settings?: {
    readonly secrets?: DeploymentSettings["secrets"];
    readonly registry?: { readonly host: string; readonly username: string; readonly password: string };
  };
  readonly otherPorts?: readonly number[];
}

const folder = fileURLToPath(new URL("../../../testdata/deployment/", import.meta.url));
const cases = readdirSync(folder).sort();

function manifestsOf(input: GoldenInput): unknown {
  const message = fromJson(ApplyDeploymentSchema, input.apply);
  if (input.healthcheck !== undefined) message.healthcheck = utf8(JSON.stringify(input.healthcheck));
  if (input.secrets !== undefined) {
    message.encryptedEnvironmentVariables = utf8(JSON.stringify({ secrets: input.secrets }));
  }
  const parsed = parseApplyDeployment(message, { registries: [] });
  assert.ok(parsed.kind === "valid", parsed.kind === "invalid" ? describeProblems(parsed.problems) : "");
  const objects = desiredDeployment(parsed.spec, settingsOf(input), input.otherPorts ?? []);
  return objects.map(({ manifest }) => manifest);
}

function settingsOf({ settings }: GoldenInput): DeploymentSettings {
  const registry = settings?.registry;
  return {
    secrets: settings?.secrets ?? { audience: "krane" },
    ...(registry && { registry: { ...registry, password: { reveal: () => registry.password } } }),
  };
}

test("there are golden manifests", () => {
  assert.ok(cases.length >= 15, `${cases.length} cases`);
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
