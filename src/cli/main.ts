// From the command line to an exit code. The only place that catches everything: what
// arrives here is told to a person on standard error and becomes the exit code.
import { Command, CommanderError } from "commander";
import { runAgent } from "./agent-command.ts";
import { loadBuildInfo } from "./build-info.ts";
import { checkConfig, printConfig } from "./config-command.ts";
import { addConfigOptions } from "./config-source.ts";
import { addDevOptions, runDev } from "./dev-command.ts";
import { renderErrors } from "./error-text.ts";
import { addExecOptions, runExec } from "./exec-command.ts";
import { exitCodeOf, exitCodes } from "./exit-codes.ts";
import type { Environment, Io } from "./io.ts";
import { runServerCommand } from "./server-command.ts";
import { addServerOptions } from "./server-options.ts";
import { addVaultCommands } from "./vault-command.ts";

export async function main(argv: readonly string[], env: Environment, io: Io): Promise<number> {
  let exitCode: number = exitCodes.ok;
  const program = createProgram(env, io, (code) => {
    exitCode = code;
  });
  try {
    await program.parseAsync(argv, { from: "user" });
    return exitCode;
  } catch (error) {
    // Commander has said what it had to say by then; it throws for --help as well.
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
    io.stderr.write(renderErrors(error));
    return exitCodeOf(error);
  }
}

const examples = `
Examples:
  krane dev                                         see it work, on a cluster within the process
  krane agent --config krane.toml                   run with a file
  krane agent --config krane.toml --rpc-port 9070   change one setting for this run
  krane server --data-dir ./krane-data              run a control plane, with a database of its own
  krane config check --config krane.toml            find every mistake before it runs
  krane config print --config krane.toml            see each value and where it came from
  krane exec -- node server.js                      in a pod: run a command with its secrets
  krane vault keygen                                make a master key; krane vault --help shows the rest

Exit codes:
  0 stopped cleanly   1 failed   64 wrong usage   70 bug   78 bad configuration
  130, 143 ended at once by a second SIGINT or SIGTERM
`;

function createProgram(env: Environment, io: Io, exitWith: (code: number) => void): Command {
  const build = loadBuildInfo(io.nodeVersion);
  const versionText = `krane ${build.version} (${build.revision}, Node ${build.nodeVersion})`;
  const program = new Command("krane")
    .description("Keeps a Kubernetes cluster in the state that a remote control plane asks for.")
    .version(versionText, "-V, --version", "print the version")
    .helpOption("-h, --help", "show this help")
    .helpCommand("help [command]", "show the help of a command")
    .addHelpText("after", examples)
    .showHelpAfterError("(--help shows what is possible)")
    .configureOutput({
      writeOut: (text) => io.stdout.write(text),
      writeErr: (text) => io.stderr.write(text),
      outputError: (text, write) => write(text.replace(/^error: /, "krane: ")),
    })
    .configureHelp({ showGlobalOptions: false })
    .exitOverride();

  const agent = program.command("agent").description("run the agent until SIGTERM or SIGINT");
  addConfigOptions(agent)
    .option("--announce", "say on standard error where to look, as on a terminal")
    .action(async () => exitWith(await runAgent(agent, env, io, build)));

  const server = program.command("server").description("run the control plane that agents ask what to do");
  addServerOptions(server).action(async () => exitWith(await runServerCommand(server, env, io, build)));

  const dev = program
    .command("dev")
    .description("run a whole region in one process, to look at and play with");
  addDevOptions(dev).action(async () => exitWith(await runDev(dev, env, io, build)));

  const config = program.command("config").description("look at a configuration without running it");
  const check = config.command("check").description("say everything that is wrong, or ok");
  addConfigOptions(check).action(async () => exitWith(await checkConfig(check, env, io)));
  const print = config
    .command("print")
    .description("show every value and where it came from, without secrets");
  addConfigOptions(print).action(async () => exitWith(await printConfig(print, env, io)));

  const exec = program.command("exec").description("run a command with the secrets of the pod it is in");
  addExecOptions(exec).action(async () => exitWith(await runExec(exec, env, io)));

  addVaultCommands(program, { env, io, build }, exitWith);

  program
    .command("version")
    .description("print the version")
    .action(() => io.stdout.write(`${versionText}\n`));
  return program;
}
