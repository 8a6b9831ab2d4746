// krane config check and krane config print: validate and show a configuration without running it.
import type { Command } from "commander";
import { findUnusableFiles } from "../agent/named-files.ts";
import type { ProcessEnv } from "../config/expand.ts";
import { renderConfig } from "../config/render.ts";
import { CommandError } from "./command-error.ts";
import { addConfigOptions, loadConfig } from "./config-source.ts";
import { renderError, withReason } from "./error-text.ts";
import { exitCodes, isBug } from "./exit-codes.ts";
import type { Io } from "./io.ts";
import { addServerSettings, loadServerConfig } from "./server-options.ts";
import { refuseWord } from "./unknown-word.ts";
import { addVaultServerOptions, loadVaultConfig } from "./vault/vault-access.ts";

type ExitWith = (code: number) => void;

interface ConfigCommandDeps {
  readonly env: ProcessEnv;
  readonly io: Io;
}

const checkExamples = `
Without server or vault, the file is an agent's.

Examples:
  krane config check --config krane.toml            the file of krane agent
  krane config check server --config server.toml    the file of krane server
  krane config check vault --config vault.toml      the file of krane vault serve
`;

const noKindOfFile = "use server, vault, or nothing for an agent; give the file with --config";

export function addConfigCommands(program: Command, deps: ConfigCommandDeps, exitWith: ExitWith): void {
  const config = program
    .command("config")
    .description("validate or show a configuration without running it")
    .addHelpText("after", "\nExamples:\n  krane config check --config krane.toml\n  krane config print\n");
  addCheck(config, deps, exitWith);
  const print = config
    .command("print")
    .description("show every setting and where its value comes from, secrets redacted");
  addConfigOptions(print)
    .addHelpText("after", "\nExample:\n  krane config print --config krane.toml\n")
    .action(async () => exitWith(await printConfig(print, deps.env, deps.io)));
}

function addCheck(config: Command, { env, io }: ConfigCommandDeps, exitWith: ExitWith): void {
  const { signal } = new AbortController();
  const check = config
    .command("check")
    .description("report every problem in an agent's configuration, or print ok")
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
    .description("report every problem in a server's configuration, or print ok");
  addServerSettings(server)
    .addHelpText("after", "\nExample:\n  krane config check server --config server.toml\n")
    .action(async () => {
      const loaded = await loadServerConfig(server, env, io, signal);
      const { findServerFileProblems } = await import("./config-files.ts");
      exitWith(judged(io, loaded && (await findServerFileProblems(loaded, io, signal))));
    });
  const vault = check
    .command("vault")
    .description("report every problem in a vault's configuration, or print ok");
  addVaultServerOptions(vault)
    .addHelpText("after", "\nExample:\n  krane config check vault --config vault.toml\n")
    .action(async () => {
      const loaded = await loadVaultConfig("serve", vault, env, io, signal);
      const { findVaultFileProblems } = await import("./config-files.ts");
      exitWith(judged(io, loaded && (await findVaultFileProblems(loaded, io, signal))));
    });
  // Commander would only count the excess arguments; the action above names the wrong one. Set after the subcommands
  // are added, because they would inherit it.
  check.allowExcessArguments();
}

/** Options before the subcommand would be ignored, and a file that was never read would pass as ok. */
function assertNoOptions(check: Command, other: Command): void {
  const given = check.options.find((option) => check.getOptionValueSource(option.attributeName()) === "cli");
  if (given === undefined) return;
  const right = `krane config check ${other.name()} ${given.long ?? given.flags}`;
  throw new CommandError("usage", `put options after ${other.name()}: ${right} ...`);
}

/** Prints the problems of the files that a configuration names; `undefined` means the configuration itself is invalid. */
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

async function printConfig(command: Command, env: ProcessEnv, io: Io): Promise<number> {
  const loaded = await loadConfig(command, env, io, new AbortController().signal);
  if (!loaded) return exitCodes.config;
  io.stdout.write(renderConfig(loaded));
  return exitCodes.ok;
}
