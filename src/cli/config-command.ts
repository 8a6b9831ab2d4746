// krane config check, krane config print: look at a configuration without running it.
import type { Command } from "commander";
import { findUnusableFiles } from "../agent/named-files.ts";
import { renderConfig } from "../config/render.ts";
import { CommandError } from "./command-error.ts";
import { addConfigOptions, loadConfig } from "./config-source.ts";
import { renderError, withReason } from "./error-text.ts";
import { exitCodes, isBug } from "./exit-codes.ts";
import type { Environment, Io } from "./io.ts";
import { addServerSettings, loadServerConfig } from "./server-options.ts";
import { refuseWord } from "./unknown-word.ts";
import { addVaultServerOptions, loadVaultConfig } from "./vault/vault-access.ts";

type ExitWith = (code: number) => void;

interface ConfigCommandDeps {
  readonly env: Environment;
  readonly io: Io;
}

const checkExamples = `
Without a word behind it, the file is that of an agent.

Examples:
  krane config check --config krane.toml            the file of krane agent
  krane config check server --config server.toml    the file of krane server
  krane config check vault --config vault.toml      the file of krane vault serve
`;

const noKindOfFile = "server, vault, or no word for an agent; a file stands behind --config";

export function addConfigCommands(program: Command, deps: ConfigCommandDeps, exitWith: ExitWith): void {
  const config = program
    .command("config")
    .description("look at a configuration without running it")
    .addHelpText("after", "\nExamples:\n  krane config check --config krane.toml\n  krane config print\n");
  addCheck(config, deps, exitWith);
  const print = config
    .command("print")
    .description("show every value and where it came from, without secrets");
  addConfigOptions(print)
    .addHelpText("after", "\nExample:\n  krane config print --config krane.toml\n")
    .action(async () => exitWith(await printConfig(print, deps.env, deps.io)));
}

function addCheck(config: Command, { env, io }: ConfigCommandDeps, exitWith: ExitWith): void {
  const { signal } = new AbortController();
  const check = config
    .command("check")
    .description("say everything that is wrong with the file of an agent, or ok")
    .helpCommand(false);
  addConfigOptions(check)
    .addHelpText("after", checkExamples)
    .hook("preSubcommand", (_, other) => assertNoOptions(check, other))
    .action(async () => {
      const [word] = check.args;
      if (word !== undefined) refuseWord(check, word, noKindOfFile);
      const loaded = await loadConfig(check, env, io, signal);
      exitWith(judged(io, loaded && (await findUnusableFiles(loaded.config, io, signal))));
    });
  const server = check
    .command("server")
    .description("say everything that is wrong with the file of krane server, or ok");
  addServerSettings(server)
    .addHelpText("after", "\nExample:\n  krane config check server --config server.toml\n")
    .action(async () => {
      const loaded = await loadServerConfig(server, env, io, signal);
      const { findServerFileProblems } = await import("./config-files.ts");
      exitWith(judged(io, loaded && (await findServerFileProblems(loaded, io, signal))));
    });
  const vault = check
    .command("vault")
    .description("say everything that is wrong with the file of krane vault serve, or ok");
  addVaultServerOptions(vault)
    .addHelpText("after", "\nExample:\n  krane config check vault --config vault.toml\n")
    .action(async () => {
      const loaded = await loadVaultConfig("serve", vault, env, io, signal);
      const { findVaultFileProblems } = await import("./config-files.ts");
      exitWith(judged(io, loaded && (await findVaultFileProblems(loaded, io, signal))));
    });
  // The library would count the words and name none. Only now, because the commands below would have it from this one.
  check.allowExcessArguments();
}

/** In front of the word they are about an agent. Passed over, they would leave a file unread, and it would be called ok. */
function assertNoOptions(check: Command, other: Command): void {
  const given = check.options.find((option) => check.getOptionValueSource(option.attributeName()) === "cli");
  if (given === undefined) return;
  const right = `krane config check ${other.name()} ${given.long ?? given.flags}`;
  throw new CommandError("usage", `options stand behind ${other.name()}: ${right} ...`);
}

/** What is wrong with the files that a configuration names; undefined after the configuration itself was found wrong. */
function judged(io: Io, problems: readonly unknown[] | undefined): number {
  if (problems === undefined) return exitCodes.config;
  for (const problem of problems) {
    if (isBug(problem)) throw problem;
    io.stderr.write(renderError(withReason(problem), "failure"));
  }
  if (problems.length > 0) return exitCodes.config;
  io.stdout.write("ok\n");
  return exitCodes.ok;
}

async function printConfig(command: Command, env: Environment, io: Io): Promise<number> {
  const loaded = await loadConfig(command, env, io, new AbortController().signal);
  if (!loaded) return exitCodes.config;
  io.stdout.write(renderConfig(loaded));
  return exitCodes.ok;
}
