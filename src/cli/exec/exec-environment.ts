// Reads the pod's variables that describe its secrets, and builds the environment of the command.

import type { ProcessEnv } from "../../config/expand.ts";
import { isPrivateHost } from "../../config/insecure-url.ts";
import { findVariableNameFlaw, readSecretsBlob, variables } from "../../kinds/deployment/secrets-blob.ts";
import { tokenPath } from "../../kinds/deployment/secrets-token.ts";
import { ExecError } from "./exec-error.ts";

export interface SecretsQuestion {
  /** Without a trailing slash. */
  readonly endpoint: string;
  readonly tokenPath: string;
  readonly blob: Uint8Array;
  /** The variables that the response must have, no more and no fewer. */
  readonly names: ReadonlySet<string>;
  readonly deploymentId: string;
  readonly environmentId: string;
}

/** The request for krane; undefined for a deployment without secrets. */
export function parseSecretsQuestion(env: ProcessEnv): SecretsQuestion | undefined {
  const encoded = env[variables.encryptedEnvironment] ?? "";
  if (encoded === "") return undefined;
  const blob = Buffer.from(encoded, "base64");
  const secrets = isBase64(encoded) ? readSecretsBlob(blob) : undefined;
  if (secrets === undefined)
    throw wrong(variables.encryptedEnvironment, "is not a value that krane sets; was it changed?");
  if (secrets.size === 0) return undefined;
  for (const name of secrets.keys()) {
    const flaw = findVariableNameFlaw(name);
    if (flaw !== undefined) throw wrong(variables.encryptedEnvironment, `${JSON.stringify(name)} ${flaw}`);
  }
  return {
    endpoint: parseEndpoint(needed(env, variables.providerEndpoint)),
    tokenPath: env[variables.tokenPath] || tokenPath,
    blob,
    names: new Set(secrets.keys()),
    deploymentId: needed(env, variables.deploymentId),
    environmentId: needed(env, variables.environmentId),
  };
}

// Passed on to the command. All other variables with these prefixes are only for fetching the secrets.
const keptVariables: ReadonlySet<string> = new Set([
  variables.deploymentId,
  variables.environmentId,
  "UNKEY_REGION",
  "UNKEY_INSTANCE_ID",
]);
const ownPrefix = /^(UNKEY|KUBERNETES)_/;

/**
 * Secrets override variables of the same name, and may have any name: they belong to the same tenant as the command,
 * so a secret named LD_PRELOAD or PATH gives nobody new rights.
 */
export function childEnvironment(
  env: ProcessEnv,
  secrets: ReadonlyMap<string, string>,
): Record<string, string | undefined> {
  const own = Object.entries(env).filter(([name]) => keptVariables.has(name) || !ownPrefix.test(name));
  return Object.fromEntries([...own, ...secrets]);
}

/** Returns the variables; throws if one is missing, unexpected or unusable. */
export function checkAnswer(
  question: SecretsQuestion,
  answer: Readonly<Record<string, string>>,
): ReadonlyMap<string, string> {
  const received = new Map(Object.entries(answer));
  const { names } = question;
  if (received.size !== names.size || ![...names].every((name) => received.has(name)))
    throw new ExecError(
      "unusable",
      "krane returned other variables than requested; this is a bug, please report it",
    );
  for (const [name, value] of received) {
    if (value.includes("\0"))
      throw new ExecError(
        "unusable",
        `the value of ${JSON.stringify(name)} has a NUL character, which environment variables cannot hold; ` +
          "encode the value, for example as base64",
      );
  }
  return received;
}

function parseEndpoint(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !["http:", "https:"].includes(url.protocol))
    throw wrong(variables.providerEndpoint, "is not an http or https URL; fix `secrets.endpoint` of krane");
  if (url.protocol === "http:" && !isPrivateHost(url.hostname))
    throw wrong(
      variables.providerEndpoint,
      "would send the pod's token unencrypted over a public network; use https in `secrets.endpoint` of krane",
    );
  return text.replace(/\/+$/, "");
}

function needed(env: ProcessEnv, name: string): string {
  const value = env[name] ?? "";
  if (value === "") throw wrong(name, "is not set, but the pod has secrets; was this pod created by krane?");
  return value;
}

function isBase64(text: string): boolean {
  return /^[A-Za-z0-9+/]+={0,2}$/.test(text) && text.length % 4 === 0;
}

function wrong(name: string, reason: string): ExecError {
  return new ExecError("setup_wrong", `${name}: ${reason}`);
}
