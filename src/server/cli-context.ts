// Writes a context file for the command line, so that a new control plane can be used at
// once. It holds a token, so only its owner may read the file.
import { X509Certificate } from "node:crypto";
import { dirname, resolve } from "node:path";
import type { Secret } from "../config/secret.ts";
import type { ServerConfig } from "./config/server-config.ts";
import { readAdminTokens } from "./config/token-lines.ts";
import { cliContextName } from "./embedded/data-folder.ts";
import { type Tokens, writePrivately } from "./token-files.ts";

export interface CliContext {
  readonly name: string;
  readonly server: string;
  readonly region: string;
  readonly token: Secret;
  /** Certificates to trust instead of the system's. */
  readonly caFile?: string | undefined;
  /** The vault that `krane secrets` encrypts with. */
  readonly vault?: { readonly url: string; readonly token: Secret };
}

export interface CliContextDeps {
  readTextFile(path: string, signal: AbortSignal): Promise<string>;
}

/** The text of a contexts file that holds this context. */
export function renderCliContext({ name, server, region, token, caFile, vault }: CliContext): string {
  const fields = { server, region, token: token.reveal(), ...(caFile !== undefined && { ca_file: caFile }) };
  const ofVault = vault && { url: vault.url, token: vault.token.reveal() };
  return `# Written at each start. Use it with: export KRANE_CONFIG=<this file>
current = ${tomlText(name)}

${tomlTable(`contexts.${name}`, fields)}${ofVault ? `\n${tomlTable(`contexts.${name}.vault`, ofVault)}` : ""}`;
}

function tomlTable(title: string, fields: Readonly<Record<string, string>>): string {
  const lines = Object.entries(fields).map(([key, value]) => `${key} = ${tomlText(value)}\n`);
  return `[${title}]\n${lines.join("")}`;
}

/** TOML has the same escapes as JSON, and requires one more character to be escaped. */
function tomlText(text: string): string {
  return JSON.stringify(text).replaceAll("\u007f", "\\u007f");
}

/** Writes the file beside a token that the server generated, and returns its path. Other tokens get no file. */
export async function writeCliContext(
  { tls }: ServerConfig,
  tokens: Tokens | undefined,
  { url: server, regions }: { readonly url: string; readonly regions: readonly string[] },
  deps: CliContextDeps,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (tokens?.path === undefined) return undefined;
  const known = readAdminTokens(await tokens.source.current(signal));
  const best = known.find(({ role }) => role === "read-write") ?? known[0];
  if (best === undefined) return undefined;
  const [region = ""] = regions;
  const caFile = tls && (await isSelfSigned(tls.certFile, deps, signal)) ? resolve(tls.certFile) : undefined;
  const path = resolve(dirname(tokens.path), cliContextName);
  await writePrivately(path, renderCliContext({ name: "server", server, region, token: best.token, caFile }));
  return path;
}

/** A self-signed certificate is its own authority; for any other one, the owner has to name the issuer. */
async function isSelfSigned(path: string, deps: CliContextDeps, signal: AbortSignal): Promise<boolean> {
  const certificate = new X509Certificate(await deps.readTextFile(path, signal));
  return certificate.checkIssued(certificate);
}
