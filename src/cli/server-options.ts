// The options of krane server, and its configuration from file, environment and flags.
import { type Command, Option } from "commander";
import type { ProcessEnv } from "../config/expand.ts";
import { renderProblems } from "../config/render.ts";
import type { ServerConfig } from "../server/config/server-config.ts";
import { parseServerConfig } from "../server/config/server-config.ts";
import { allServerSettings } from "../server/config/server-settings.ts";
import type { Io } from "./io.ts";

const settingsHeading = "Settings (flags override environment variables, which override the file):";

const examples = `
Examples:
  krane server --data-dir ./krane-data               with an embedded PostgreSQL
  krane server --database-url-file db.url --agent-tokens-file tokens.txt
                                                     with your own; several servers may share it
  krane server --config server.toml --listen 0.0.0.0:7091 --tls-cert-file c.pem --tls-key-file k.pem
                                                     for agents on other machines
`;

export function addServerOptions(command: Command): Command {
  return addServerSettings(command).addHelpText("after", examples);
}

const renewExamples = `
Most restores are noticed: those into another database, with pg_restore --clean, and the promotion of a replica.
Run it on a database that an older data folder or a volume snapshot was put back into. Servers on it may keep running;
a server with a data folder has to be stopped first.

Examples:
  krane server new-incarnation --config server.toml
  krane server new-incarnation --data-dir ./krane-data
`;

export function addNewIncarnationOptions(command: Command): Command {
  return addServerSettings(command).addHelpText("after", renewExamples);
}

/** Adds `--config` and a flag for each setting. */
export function addServerSettings(command: Command): Command {
  command.option("-c, --config <path>", "configuration file");
  for (const { flag, kind, about } of allServerSettings) {
    const value = kind.label === "boolean" ? `[${kind.placeholder}]` : `<${kind.placeholder}>`;
    const description = about.replaceAll("`", "");
    command.addOption(new Option(`--${flag} ${value}`, description).helpGroup(settingsHeading));
  }
  return command;
}

/** Returns the configuration, or undefined after printing its problems. */
export async function loadServerConfig(
  command: Command,
  env: ProcessEnv,
  io: Io,
  signal: AbortSignal,
): Promise<ServerConfig | undefined> {
  const { config: path } = command.opts<{ config?: string }>();
  let file: { path: string; text: string } | undefined;
  try {
    if (path !== undefined) file = { path, text: await io.readTextFile(path, signal) };
  } catch (error) {
    signal.throwIfAborted();
    io.stderr.write(`${path}: cannot be read: ${error instanceof Error ? error.message : String(error)}\n`);
    return undefined;
  }
  const outcome = parseServerConfig({ ...(file && { file }), env, flags: flagsOf(command) });
  if (outcome.kind === "valid") return outcome.config;
  io.stderr.write(renderProblems(outcome.problems));
  return undefined;
}

function flagsOf(command: Command): Record<string, string> {
  const values = command.opts<Record<string, string | true | undefined>>();
  const flags: Record<string, string> = {};
  for (const option of command.options) {
    const value = values[option.attributeName()];
    const isSetting = allServerSettings.some(({ flag }) => flag === option.name());
    if (value !== undefined && isSetting) flags[option.name()] = String(value);
  }
  return flags;
}
