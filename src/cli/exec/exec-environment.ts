// What a pod's variables say about its secrets, and the variables that its program is started with.
import { isPrivateHost } from "../../config/insecure-url.ts";
import { findVariableNameFlaw, readSecretsBlob, variables } from "../../kinds/deployment/secrets-blob.ts";
import { tokenPath } from "../../kinds/deployment/secrets-token.ts";
import type { Environment } from "../io.ts";
import { ExecError } from "./exec-error.ts";

export interface SecretsQuestion {
  /** Without a trailing slash. */
  readonly endpoint: string;
  readonly tokenPath: string;
  readonly blob: Uint8Array;
  /** The variables that the answer has to have, no more and no fewer. */
  readonly names: ReadonlySet<string>;
  readonly deploymentId: string;
  readonly environmentId: string;
}

/** What to ask krane; undefined for a deployment without secrets, which is run as it is. */
export function parseSecretsQuestion(env: Environment): SecretsQuestion | undefined {
  const encoded = env[variables.encryptedEnvironment] ?? "";
  if (encoded === "") return undefined;
  const blob = Buffer.from(encoded, "base64");
  const secrets = isBase64(encoded) ? readSecretsBlob(blob) : undefined;
  if (secrets === undefined)
    throw wrong(variables.encryptedEnvironment, "is not what krane puts there; was it changed on the way?");
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

// What the program may know of where it runs. Everything else that begins like this was for whoever
// fetched the secrets.
const keptVariables: ReadonlySet<string> = new Set([
  variables.deploymentId,
  variables.environmentId,
  "UNKEY_REGION",
  "UNKEY_INSTANCE_ID",
]);
const ownPrefix = /^(UNKEY|KUBERNETES)_/;

/**
 * The secrets win over variables of the same name, and may have any name: they belong to the same
 * tenant as the program, so LD_PRELOAD or PATH among them gives nobody a right that they lack.
 */
export function childEnvironment(
  env: Environment,
  secrets: ReadonlyMap<string, string>,
): Record<string, string | undefined> {
  const own = Object.entries(env).filter(([name]) => keptVariables.has(name) || !ownPrefix.test(name));
  return Object.fromEntries([...own, ...secrets]);
}

/** The variables, if they are all there and a program can be started with them. */
export function checkAnswer(
  question: SecretsQuestion,
  answer: Readonly<Record<string, string>>,
): ReadonlyMap<string, string> {
  const received = new Map(Object.entries(answer));
  const { names } = question;
  if (received.size !== names.size || ![...names].every((name) => received.has(name)))
    throw new ExecError("unusable", "krane answered with other variables than it was asked for; report this");
  for (const [name, value] of received) {
    if (value.includes("\0"))
      throw new ExecError(
        "unusable",
        `the value of ${JSON.stringify(name)} has a NUL character, which no environment can hold; ` +
          "encode the value, in base64 for example",
      );
  }
  return received;
}

function parseEndpoint(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !["http:", "https:"].includes(url.protocol))
    throw wrong(variables.providerEndpoint, "is no http or https URL; correct `secrets.endpoint` of krane");
  if (url.protocol === "http:" && !isPrivateHost(url.hostname))
    throw wrong(
      variables.providerEndpoint,
      "would send the token of this pod in clear over a public network; use https in `secrets.endpoint` of krane",
    );
  return text.replace(/\/+$/, "");
}

function needed(env: Environment, name: string): string {
  const value = env[name] ?? "";
  if (value === "") throw wrong(name, "is not set, though there are secrets; does krane run this pod?");
  return value;
}

function isBase64(text: string): boolean {
  return /^[A-Za-z0-9+/]+={0,2}$/.test(text) && text.length % 4 === 0;
}

function wrong(name: string, reason: string): ExecError {
  return new ExecError("setup_wrong", `${name}: ${reason}`);
}
