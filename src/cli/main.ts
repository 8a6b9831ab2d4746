// Parses the command line, runs the command and returns its exit code. The only place that catches every error: it
// prints the error to standard error and maps it to an exit code.

import { readFileSync } from "node:fs";
import { Command, CommanderError } from "commander";
import type { ProcessEnv } from "../config/expand.ts";
import type { BuildInfo } from "../telemetry/metrics.ts";
import { printableLines } from "../telemetry/scrub.ts";
import { addContextCommands } from "./admin/context-command.ts";
import { addReleaseCommands } from "./apps/release-commands.ts";
import { addCompletionCommand } from "./completion/completion-command.ts";
import { addConfigCommands } from "./config-command.ts";
import { addConfigOptions } from "./config-source.ts";
import { addDevOptions } from "./dev-options.ts";
import { addDoctorCommand } from "./doctor-command.ts";
import { renderErrors } from "./error-text.ts";
import { addExecOptions, runExec } from "./exec/exec-command.ts";
import { exitCodeOf, exitCodes } from "./exit-codes.ts";
import { addHostnameCommands } from "./hostnames/hostname-commands.ts";
import { addAdoptCommand, addDeletionCommands, addInsightCommands } from "./insight/insight-commands.ts";
import type { Io } from "./io.ts";
import { addLogsCommand } from "./logs/log-command.ts";
import { addObjectCommands } from "./objects/object-commands.ts";
import { addRenderCommand } from "./render-command.ts";
import { addSchemaCommands } from "./schema-commands.ts";
import { addSecretCommands } from "./secrets/secret-commands.ts";
import { addNewIncarnationOptions, addServerOptions } from "./server-options.ts";
import { refuseWord } from "./unknown-word.ts";
import { addVaultCommands } from "./vault/vault-command.ts";

export async function main(argv: readonly string[], env: ProcessEnv, io: Io): Promise<number> {
  let exitCode: number = exitCodes.ok;
  const program = createProgram(env, io, (code) => {
    exitCode = code;
  });
  try {
    refuseEarlyFlag(program, argv);
    await program.parseAsync(helpArguments(program, argv), { from: "user" });
    return exitCode;
  } catch (error) {
    // Commander has already printed its message; it throws for --help, too.
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
    io.stderr.write(renderErrors(error));
    return exitCodeOf(error);
  }
}

/**
 * Turns `help secrets set` into `secrets set --help`: Commander supports only one level, and shows the whole help for an
 * unknown command instead of an error.
 */
function helpArguments(program: Command, argv: readonly string[]): readonly string[] {
  const [first, ...words] = argv;
  if (first !== "help" || words.some((word) => word.startsWith("-"))) return argv;
  if (words[0] === "help") return ["--help"];
  let command = program;
  for (const word of words) {
    const below = command.commands.find((each) => each.name() === word);
    if (below === undefined) return refuseWord(command, word);
    command = below;
  }
  return [...words, "--help"];
}

/** kubectl takes these flags before the command; "unknown option" would not say that krane has them, too. */
function refuseEarlyFlag(program: Command, [first = ""]: readonly string[]): void {
  const flag = /^--(context|region|server|token-file)\b/.exec(first)?.[0];
  if (flag !== undefined)
    program.error(`error: ${flag} belongs behind the command, as in krane get apps ${flag} VALUE`);
}

const examples = `
Examples:
  krane dev                                         try krane on an embedded cluster
  krane apply -f hello.yaml --wait                  apply documents and wait until they are ready
  krane get deployments                             list deployments
  krane why hello                                   explain why an object is not ready
  krane logs -f hello                               follow the logs of its pods
  krane agent --config krane.toml                   run the agent of a cluster
  krane server --data-dir ./krane-data              run a control plane with its own database
  krane config check --config krane.toml            validate a configuration

Exit codes:
  0 done   1 failed   2 diff found a difference   3 not found   64 wrong usage   69 unreachable   70 bug
  77 not allowed   78 bad configuration   126, 127 krane exec: cannot run the program   130, 143 ended by a signal
`;

const aboutHelp = "show the help of a command";

/** All commands, with their flags and help. */
export function createProgram(env: ProcessEnv, io: Io, exitWith: (code: number) => void): Command {
  const build = loadBuildInfo(io.nodeVersion);
  const versionText = `krane ${build.version} (${build.revision}, Node ${build.nodeVersion})`;
  const program = new Command("krane")
    .description("Keeps a Kubernetes cluster in the state that a remote control plane wants.")
    .version(versionText, "-V, --version", "print the version")
    .helpOption("-h, --help", "show this help")
    .helpCommand("help [command]", aboutHelp)
    .addHelpText("after", examples)
    .showHelpAfterError("See --help.")
    .configureOutput({
      writeOut: (text) => io.stdout.write(text),
      writeErr: (text) => io.stderr.write(text),
      outputError: (text, write) => write(printableLines(text).replace(/^error: /, "krane: ")),
    })
    .configureHelp({ showGlobalOptions: false })
    // Options after a subcommand belong to it, even if its parent has the same option.
    .enablePositionalOptions()
    .exitOverride();

  const deps = { env, io, build };
  program.commandsGroup("Work with a control plane:");
  addContextCommands(program, deps, exitWith);
  addObjectCommands(program, deps, exitWith);
  addReleaseCommands(program, deps, exitWith);
  addLogsCommand(program, deps, exitWith);
  addInsightCommands(program, deps, exitWith);
  addDeletionCommands(program, deps, exitWith);
  addAdoptCommand(program, deps, exitWith);
  addSecretCommands(program, deps, exitWith);
  addHostnameCommands(program, deps, exitWith);
  addRenderCommand(program, deps, exitWith);
  addSchemaCommands(program, deps);
  addDoctorCommand(program, deps, exitWith);
  program.commandsGroup("The parts of krane:");
  addRunCommands(program, deps, exitWith);
  addVaultCommands(program, deps, exitWith);
  program.commandsGroup("This program:");
  addCompletionCommand(program, deps);
  program
    // Again, for its place in the list; subcommand groups inherited the one above.
    .helpCommand("help [command]", aboutHelp)
    .command("version")
    .description("print the version")
    .addHelpText("after", "\nExample:\n  krane version\n")
    .action(() => io.stdout.write(`${versionText}\n`));
  return program;
}

/**
 * The commands that run until stopped, and those for their configuration. Each imports its code only when it runs:
 * `krane get` must not load the agent, nor the agent a database.
 */
function addRunCommands(
  program: Command,
  { env, io, build }: { readonly env: ProcessEnv; readonly io: Io; readonly build: BuildInfo },
  exitWith: (code: number) => void,
): void {
  const agent = program.command("agent").description("run the agent until SIGTERM or SIGINT");
  addConfigOptions(agent)
    .option("--announce", "print the health and metrics URLs even without a terminal")
    .addHelpText("after", "\nExamples:\n  krane agent --config krane.toml\n  krane agent --rpc-port 9070\n")
    .action(async () => {
      const { runAgent } = await import("./agent-command.ts");
      exitWith(await runAgent(agent, env, io, build));
    });

  const server = program.command("server").description("run a control plane");
  addServerOptions(server).action(async () => {
    const { runServerCommand } = await import("./server-command.ts");
    exitWith(await runServerCommand(server, env, io, build));
  });

  const renew = server
    .command("new-incarnation")
    .description(
      "make agents compare everything; run it after you restored a data folder or a volume snapshot",
    );
  addNewIncarnationOptions(renew).action(async () => {
    const { runNewIncarnationCommand } = await import("./server-command.ts");
    exitWith(await runNewIncarnationCommand(renew, env, io, build));
  });

  const dev = program.command("dev").description("run a whole region in one process, to try out krane");
  addDevOptions(dev).action(async () => {
    const { runDev } = await import("./dev-command.ts");
    exitWith(await runDev(dev, env, io, build));
  });

  addConfigCommands(program, { env, io }, exitWith);

  const exec = program.command("exec").description("run a command with the secrets of its pod");
  addExecOptions(exec).action(async () => exitWith(await runExec(exec, env, io)));
}

// Version and revision. They are built into the bundle; when running from source, the version comes from package.json.

// Replaced by tools/bundle.ts.
declare const KRANE_VERSION: string | undefined;
declare const KRANE_REVISION: string | undefined;

function loadBuildInfo(nodeVersion: string): BuildInfo {
  return {
    version: typeof KRANE_VERSION === "string" ? KRANE_VERSION : loadPackageVersion(),
    revision: typeof KRANE_REVISION === "string" ? KRANE_REVISION : "source",
    nodeVersion,
  };
}

function loadPackageVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
  const { version } = manifest as { readonly version: string };
  return version;
}
