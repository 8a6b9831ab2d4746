// The blob that holds a tenant's variables: the JSON form of SecretsConfig, readable but for its values.
// It goes into the pod as it is. Checking it here shows a broken one at once and by name; otherwise
// every pod of the deployment would start, fail to get its variables, and crash.
import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { SecretsConfigSchema } from "../../gen/ctrl/v1/secrets_pb.ts";
import { quote, type Refuse } from "../../model/field-problem.ts";

// The names of the variables that krane sets in the container of a deployment. A tenant's own variables
// travel inside the encrypted blob, and may not have these names: which of the two the program then
// saw would depend on who wrote last.

export const variables = {
  port: "PORT",
  workspaceId: "UNKEY_WORKSPACE_ID",
  projectId: "UNKEY_PROJECT_ID",
  environmentId: "UNKEY_ENVIRONMENT_ID",
  deploymentId: "UNKEY_DEPLOYMENT_ID",
  encryptedEnvironment: "UNKEY_ENCRYPTED_ENV",
  providerEndpoint: "UNKEY_PROVIDER_ENDPOINT",
  tokenPath: "UNKEY_TOKEN_PATH",
} as const;

const reservedVariables: ReadonlySet<string> = new Set(Object.values(variables));

const field = "encrypted_environment_variables";

// Linux starts no process with a variable longer than 128 KiB, counting name, "=" and the final NUL.
const variableBytesMax = 131_072 - `${variables.encryptedEnvironment}=`.length - 1;
export const blobBytesMax = Math.floor(variableBytesMax / 4) * 3;

const variableName = /^[A-Za-z_.-][A-Za-z0-9_.-]{0,255}$/;

/** The blob in base64, as the pod gets it; empty where there are no variables. */
export function parseSecretsBlob(blob: Uint8Array, refuse: Refuse): string {
  if (blob.length === 0) return "";
  if (blob.length > blobBytesMax) {
    refuse(field, `has ${blob.length} bytes; more than ${blobBytesMax} do not fit into a variable`);
    return "";
  }
  const secrets = readSecretsBlob(blob);
  if (secrets === undefined) refuse(field, "is not the JSON form of SecretsConfig");
  for (const name of secrets?.keys() ?? []) {
    const flaw = findVariableNameFlaw(name);
    if (flaw !== undefined) refuse(`${field}.secrets[${quote(name)}]`, flaw);
  }
  return Buffer.from(blob).toString("base64");
}

/** Why a tenant's variable cannot have this name. */
export function findVariableNameFlaw(name: string): string | undefined {
  // A message cannot hold the second, and drops it without a word.
  if (!variableName.test(name) || name === "__proto__") return "cannot be the name of a variable";
  return reservedVariables.has(name) ? "is a variable that krane sets itself" : undefined;
}

/**
 * From the name of each variable to its encrypted value; undefined where the blob is none. The errors
 * of the parsers quote what they read, which may be somebody's secret in the wrong place (K7), so what
 * they say is dropped.
 */
export function readSecretsBlob(blob: Uint8Array): ReadonlyMap<string, string> | undefined {
  if (blob.length === 0) return new Map();
  try {
    const json: JsonValue = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(blob));
    const secrets = Object.entries(fromJson(SecretsConfigSchema, json).secrets);
    // A message cannot hold the name "__proto__" and drops it, and a program would start without it.
    const written = (json as { readonly secrets?: object | null }).secrets ?? {};
    return secrets.length === Object.keys(written).length ? new Map(secrets) : undefined;
  } catch {
    return undefined;
  }
}
