// Loads the tokens of agents and people: from the configuration, or, for a server with a
// data folder and no configured tokens, generated once and kept in that folder.
import { readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../concurrency/clock.ts";
import type { SecretRef } from "../config/secret.ts";
import { createSecretSource, type SecretSource } from "../config/secret-source.ts";
import type { SecretSetting } from "../config/setting.ts";
import type { Log } from "../telemetry/log.ts";
import type { ServerConfig } from "./config/server-config.ts";
import { serverSettings } from "./config/server-settings.ts";
import { adminTokensName, agentTokensName } from "./embedded/data-folder.ts";
import { ServerError } from "./server-error.ts";

export interface TokenFilesDeps {
  readonly clock: Clock;
  readonly log: Log;
  readTextFile(path: string, signal: AbortSignal): Promise<string>;
  createToken(): string;
}

export interface Tokens {
  readonly source: SecretSource;
  /** The file that holds them, if the server chose it. */
  readonly path: string | undefined;
}

const firstRegion = "local.dev";

/** A list that the server creates when none is configured. */
interface FirstList {
  readonly setting: SecretSetting;
  readonly fileName: string;
  text(token: string): string;
}

const firstAgentTokens: FirstList = {
  setting: serverSettings.agentTokens,
  fileName: agentTokensName,
  text: (token) =>
    `# Region, a space and the token of its agents; one line each. Read again when it changes.\n${firstRegion} ${token}\n`,
};

const firstAdminTokens: FirstList = {
  setting: serverSettings.adminTokens,
  fileName: adminTokensName,
  text: (token) =>
    `# Name, role (read-only or read-write) and token; one line each. Read again when it changes.\nadmin read-write ${token}\n`,
};

/** A server without configured agent tokens has an embedded database. */
export async function openAgentTokens(config: ServerConfig, deps: TokenFilesDeps): Promise<Tokens> {
  const tokens = await openTokens(config.agentTokens, firstAgentTokens, config, deps);
  if (tokens === undefined) throw new Error("a server needs agent tokens");
  return tokens;
}

/** Undefined without an admin API. */
export function openAdminTokens(config: ServerConfig, deps: TokenFilesDeps): Promise<Tokens | undefined> {
  return openTokens(config.adminTokens, firstAdminTokens, config, deps);
}

async function openTokens(
  configured: SecretRef | undefined,
  first: FirstList,
  { database }: ServerConfig,
  deps: TokenFilesDeps,
): Promise<Tokens | undefined> {
  const { setting } = first;
  const sourceOf = (ref: SecretRef) =>
    createSecretSource(
      ref,
      {
        readTextFile: deps.readTextFile,
        nowMs: () => deps.clock.nowMs(),
        onFailure: (error) => deps.log.warn("cannot reload the tokens; keeping the current ones", { error }),
      },
      setting.kind,
    );
  if (configured !== undefined) return { source: sourceOf(configured), path: undefined };
  if (database.kind !== "embedded") return undefined;
  const path = join(database.dataDir, first.fileName);
  if (!(await isThere(path))) await writePrivately(path, first.text(deps.createToken()));
  return { source: sourceOf({ kind: "file", path, setting: setting.path }), path };
}

/**
 * Writes under a temporary name first: a half-written token would be rejected at the next start. The temporary file is
 * always new: in a folder owned by somebody else, an existing one may be a link to any file that this process can
 * write, or be readable to all.
 */
export async function writePrivately(path: string, text: string): Promise<void> {
  await rm(`${path}.new`, { force: true });
  await writeFile(`${path}.new`, text, { mode: 0o600, flag: "wx" });
  await rename(`${path}.new`, path);
}

/** A file that exists but cannot be read holds tokens in use, and must not be replaced. */
async function isThere(path: string): Promise<boolean> {
  try {
    await readFile(path, "utf8");
    return true;
  } catch (cause) {
    if (cause instanceof Error && "code" in cause && cause.code === "ENOENT") return false;
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new ServerError("tokens_unreadable", `the tokens cannot be read: ${reason}`, { cause });
  }
}
