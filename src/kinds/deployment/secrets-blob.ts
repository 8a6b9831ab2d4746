// Parses the blob with a tenant's variables: the JSON form of SecretsConfig, in which only the values are encrypted.
// The blob goes into the pod unchanged. An invalid one is rejected here with a reason; otherwise every pod of the
// deployment would start, fail to get its variables, and crash.
import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { SecretsConfigSchema } from "../../gen/ctrl/v1/secrets_pb.ts";
import { quote, type Refuse } from "../../model/field-problem.ts";

/**
 * The names of the variables that krane sets in the container of a deployment. The tenant's own variables are in the
 * encrypted blob and must not have these names: which value the program gets would depend on which was set last.
 */
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

// Linux does not start a process with a variable longer than 128 KiB, including its name, "=" and the final NUL.
const variableBytesMax = 131_072 - `${variables.encryptedEnvironment}=`.length - 1;
export const blobBytesMax = Math.floor(variableBytesMax / 4) * 3;

const variableName = /^[A-Za-z_.-][A-Za-z0-9_.-]{0,255}$/;

/** The blob in base64, as the pod gets it; empty without variables. */
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
  // A message cannot hold a variable named __proto__, and drops it silently.
  if (!variableName.test(name) || name === "__proto__") return "cannot be the name of a variable";
  return reservedVariables.has(name) ? "is a variable that krane sets itself" : undefined;
}

/**
 * Maps the name of each variable to its encrypted value; undefined if the blob is invalid. Parser errors are dropped,
 * because they quote their input, which may hold a secret in the wrong place (K7).
 */
export function readSecretsBlob(blob: Uint8Array): ReadonlyMap<string, string> | undefined {
  if (blob.length === 0) return new Map();
  try {
    const json: JsonValue = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(blob));
    const secrets = Object.entries(fromJson(SecretsConfigSchema, json).secrets);
    // A message drops the name "__proto__", so the program would start without that variable.
    const written = (json as { readonly secrets?: object | null }).secrets ?? {};
    return secrets.length === Object.keys(written).length ? new Map(secrets) : undefined;
  } catch {
    return undefined;
  }
}
