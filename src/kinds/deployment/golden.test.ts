// Compares the manifests of deployments with the golden files in testdata/deployment.
import assert from "node:assert/strict";
import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { utf8 } from "../../../test/support/deployment-messages.ts";
import { testGoldenManifests } from "../../../test/support/golden-manifests.ts";
import { ApplyDeploymentSchema } from "../../gen/ctrl/v1/deployment_pb.ts";
import { describeProblems } from "../../model/field-problem.ts";
import { type DeploymentSettings, desiredDeployment } from "./desired.ts";
import { parseApplyDeployment } from "./spec.ts";

interface GoldenInput {
  readonly about: string;
  readonly apply: JsonValue;
  /** Bytes in the message; readable JSON in the file. */
  readonly healthcheck?: JsonValue;
  readonly secrets?: Readonly<Record<string, string>>;
  readonly settings?: {
    readonly secrets?: DeploymentSettings["secrets"];
    readonly registry?: { readonly host: string; readonly username: string; readonly password: string };
  };
  readonly otherPorts?: readonly number[];
}

function manifestsOf(input: GoldenInput): readonly unknown[] {
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

testGoldenManifests("deployment", 15, manifestsOf);
