// The tokens that agents come with: from the configuration, or, for a server that keeps
// its data in a folder of its own and was told of none, made up once and kept there.
import { readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../concurrency/clock.ts";
import type { SecretRef } from "../config/secret.ts";
import { createSecretSource, type SecretSource } from "../config/secret-source.ts";
import type { Log } from "../telemetry/log.ts";
import type { ServerConfig } from "./config/server-config.ts";
import { serverSettings } from "./config/server-settings.ts";
import { tokensName } from "./embedded/data-folder.ts";
import { ServerError } from "./server-error.ts";

export interface AgentTokensDeps {
  readonly clock: Clock;
  readonly log: Log;
  readTextFile(path: string, signal: AbortSignal): Promise<string>;
  createToken(): string;
}

export interface AgentTokens {
  readonly source: SecretSource;
  /** The file that holds them, where the server chose it. */
  readonly path: string | undefined;
}

export const firstRegion = "local.dev";

export async function openAgentTokens(config: ServerConfig, deps: AgentTokensDeps): Promise<AgentTokens> {
  const path = config.agentTokens === undefined ? await createFile(config, deps) : undefined;
  const setting = serverSettings.agentTokens.path;
  const ref: SecretRef = config.agentTokens ?? { kind: "file", path: path ?? "", setting };
  const source = createSecretSource(
    ref,
    {
      readTextFile: deps.readTextFile,
      nowMs: () => deps.clock.nowMs(),
      onFailure: (error) => deps.log.warn("tokens not renewed, keeping those in use", { error }),
    },
    serverSettings.agentTokens.kind,
  );
  return { source, path };
}

async function createFile({ database }: ServerConfig, deps: AgentTokensDeps): Promise<string | undefined> {
  if (database.kind !== "embedded") return undefined;
  const path = join(database.dataDir, tokensName);
  if (await isThere(path)) return path;
  const text = `# Region, a space and the token of its agents; one line each. Read again when it changes.\n${firstRegion} ${deps.createToken()}\n`;
  // Under another name first: a half-written token would be refused at the next start.
  await writeFile(`${path}.new`, text, { mode: 0o600 });
  await rename(`${path}.new`, path);
  return path;
}

/** A file that is there and cannot be read holds the tokens of every agent, and may not be replaced. */
async function isThere(path: string): Promise<boolean> {
  try {
    await readFile(path, "utf8");
    return true;
  } catch (cause) {
    if (cause instanceof Error && "code" in cause && cause.code === "ENOENT") return false;
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new ServerError("tokens_unreadable", `the tokens of the agents cannot be read: ${reason}`, {
      cause,
    });
  }
}
