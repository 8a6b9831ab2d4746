// Loads a configuration from the file and flags given on the command line, and prints its problems.
import { randomInt } from "node:crypto";
import { type Command, Option } from "commander";
import type { Config } from "../config/config.ts";
import type { ProcessEnv } from "../config/expand.ts";
import {
  type ConfigInput,
  type ConfigOutcome,
  type InvalidConfig,
  parseConfig,
  type ValidConfig,
} from "../config/parse.ts";
import { renderProblems } from "../config/render.ts";
import { allSettings } from "../config/settings.ts";
import type { Io } from "./io.ts";

const defaultFile = "krane.toml";
const fileVariable = "UNKEY_CONFIG";
const settingsHeading = "Settings (flags override environment variables, which override the file):";

export interface LoadedConfig<C = Config> extends ValidConfig<C> {
  /** The file it was read from, if any. */
  readonly path: string | undefined;
}

/** Adds `--config` and a flag for each setting that the command reads (all by default). */
export function addConfigOptions(command: Command, reads: (path: string) => boolean = () => true): Command {
  command.option(
    "-c, --config <path>",
    `configuration file (default: $${fileVariable}, else ./${defaultFile} if it exists)`,
  );
  for (const { name, path, placeholder, description, isSwitch } of configFlags) {
    if (!reads(path)) continue;
    const value = isSwitch ? `[${placeholder}]` : `<${placeholder}>`;
    command.addOption(new Option(`--${name} ${value}`, description).helpGroup(settingsHeading));
  }
  return command;
}

/** Returns the configuration, or undefined after printing its problems. Prints warnings, too. */
export function loadConfig(
  command: Command,
  env: ProcessEnv,
  io: Io,
  signal: AbortSignal,
): Promise<LoadedConfig | undefined> {
  return loadConfigAs(parseConfig, command, env, io, signal);
}

/** The same for a command that needs only a part of the configuration. */
export async function loadConfigAs<C>(
  parse: (input: ConfigInput) => ConfigOutcome<C>,
  command: Command,
  env: ProcessEnv,
  io: Io,
  signal: AbortSignal,
): Promise<LoadedConfig<C> | undefined> {
  const { outcome, path } = await readConfigAs(parse, command, env, io, signal);
  for (const warning of outcome.warnings) io.stderr.write(`warning: ${renderProblems([warning])}`);
  if (outcome.kind === "invalid") {
    io.stderr.write(renderProblems(outcome.problems));
    return undefined;
  }
  return { ...outcome, path };
}

export interface ReadConfig<C = Config> {
  readonly outcome: ConfigOutcome<C>;
  /** The file it was read from, if any. */
  readonly path: string | undefined;
}

/** The same without printing anything. */
export async function readConfigAs<C>(
  parse: (input: ConfigInput) => ConfigOutcome<C>,
  command: Command,
  env: ProcessEnv,
  io: Io,
  signal: AbortSignal,
): Promise<ReadConfig<C>> {
  const file = await readConfigFile(command, env, io, signal);
  if (file.kind === "unreadable") return { outcome: file.outcome, path: undefined };
  const outcome = parse({ ...file.input, env, flags: flagsOf(command), randomId: createRandomId });
  return { outcome, path: file.input.file?.path };
}

type FileOutcome =
  | { readonly kind: "read"; readonly input: Pick<ConfigInput, "file"> }
  | { readonly kind: "unreadable"; readonly outcome: InvalidConfig };

async function readConfigFile(
  command: Command,
  env: ProcessEnv,
  io: Io,
  signal: AbortSignal,
): Promise<FileOutcome> {
  const { config: flag } = command.opts<{ config?: string }>();
  const named = flag ?? (env[fileVariable] || undefined);
  const path = named ?? defaultFile;
  if (path === "") return { kind: "unreadable", outcome: unusable("--config", "names no file") };
  try {
    return { kind: "read", input: { file: { path, text: await io.readTextFile(path, signal) } } };
  } catch (error) {
    signal.throwIfAborted();
    if (named === undefined && isMissing(error)) return { kind: "read", input: {} };
    const reason = error instanceof Error ? error.message : String(error);
    return { kind: "unreadable", outcome: unusable(path, `cannot be read: ${reason}`) };
  }
}

function unusable(where: string, message: string): InvalidConfig {
  const remedy = `give the right path with --config or $${fileVariable}`;
  return { kind: "invalid", problems: [{ path: "", where, message, remedy }], warnings: [] };
}

function isMissing(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error && "code" in cause && cause.code === "ENOENT";
}

function flagsOf(command: Command): Record<string, string> {
  const values = command.opts<Record<string, string | true | undefined>>();
  const flags: Record<string, string> = {};
  for (const option of command.options) {
    const value = values[option.attributeName()];
    const name = option.name();
    if (value !== undefined && configFlags.some((each) => each.name === name)) flags[name] = String(value);
  }
  return flags;
}

function createRandomId(): string {
  const characters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  return Array.from({ length: 8 }, () => characters.charAt(randomInt(characters.length))).join("");
}

// The command-line flags for the settings, derived from the table of settings.

interface ConfigFlag {
  /** Without dashes, for example "rpc-port". */
  readonly name: string;
  /** The setting, for example "rpc_port". */
  readonly path: string;
  /** Placeholder for the value in the help text. */
  readonly placeholder: string;
  readonly description: string;
  /** Whether the flag alone, without a value, means "true". */
  readonly isSwitch: boolean;
}

export const configFlags: readonly ConfigFlag[] = allSettings.map(({ flag, path, kind, about }) => ({
  name: flag,
  path,
  placeholder: kind.placeholder,
  description: about.replaceAll("`", ""),
  isSwitch: kind.label === "boolean",
}));
