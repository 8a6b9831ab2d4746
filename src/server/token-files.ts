// The tokens that agents and people come with: from the configuration, or, for a server
// that keeps its data in a folder of its own and was told of none, made up once and kept
// there.
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
  /** The file that holds them, where the server chose it. */
  readonly path: string | undefined;
}

export const firstRegion = "local.dev";

/** A list that the server begins when it was told of none. */
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

/** A server without tokens of agents has a database of its own. */
export async function openAgentTokens(config: ServerConfig, deps: TokenFilesDeps): Promise<Tokens> {
  const tokens = await openTokens(config.agentTokens, firstAgentTokens, config, deps);
  if (tokens === undefined) throw new Error("a server needs the tokens of its agents");
  return tokens;
}

/** Undefined where there is no admin API. */
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
        onFailure: (error) => deps.log.warn("tokens not renewed, keeping those in use", { error }),
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
 * Under another name first: a half-written token would be refused at the next start. That name is always a new file:
 * in a folder of somebody else, what is there may be a link to any file that this process can write, or readable to all.
 */
export async function writePrivately(path: string, text: string): Promise<void> {
  await rm(`${path}.new`, { force: true });
  await writeFile(`${path}.new`, text, { mode: 0o600, flag: "wx" });
  await rename(`${path}.new`, path);
}

/** A file that is there and cannot be read holds tokens that are in use, and may not be replaced. */
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
