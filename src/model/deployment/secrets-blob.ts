// The blob that holds a tenant's variables: the JSON form of SecretsConfig, readable but for its values.
// It goes into the pod as it is. Checking it here shows a broken one at once and by name; otherwise
// every pod of the deployment would start, fail to get its variables, and crash.
import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { SecretsConfigSchema } from "../../gen/ctrl/v1/secrets_pb.ts";
import { quote, type Refuse } from "../field-problem.ts";
import { reservedVariables, variables } from "./variables.ts";

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
  const names = variableNames(blob);
  if (names === undefined) refuse(field, "is not the JSON form of SecretsConfig");
  for (const name of names ?? []) {
    const path = `${field}.secrets[${quote(name)}]`;
    if (!variableName.test(name)) refuse(path, "cannot be the name of a variable");
    if (reservedVariables.has(name)) refuse(path, "is a variable that krane sets itself");
  }
  return Buffer.from(blob).toString("base64");
}

// The errors of the parsers quote what they read, which may be somebody's secret in the wrong place
// (K7), so what they say is dropped.
function variableNames(blob: Uint8Array): readonly string[] | undefined {
  try {
    const json: JsonValue = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(blob));
    return Object.keys(fromJson(SecretsConfigSchema, json).secrets);
  } catch {
    return undefined;
  }
}
