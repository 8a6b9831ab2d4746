// Runs a command as a stand-in for krane: it inherits the streams, gets all signals, and its exit code becomes krane's.
import { type ChildProcess, spawn } from "node:child_process";
import { constants } from "node:os";
import { ExecError } from "./exec-error.ts";

export interface ChildOptions {
  readonly file: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
}

const passedOn: readonly NodeJS.Signals[] = [
  "SIGTERM",
  "SIGINT",
  "SIGHUP",
  "SIGQUIT",
  "SIGUSR1",
  "SIGUSR2",
  "SIGWINCH",
  "SIGCONT",
];
// A terminal sends these to all foreground processes, so the command gets them anyway.
const sentByTerminal: ReadonlySet<NodeJS.Signals> = new Set(["SIGINT", "SIGQUIT", "SIGWINCH"]);

const signalBase = 128;

/** Resolves with the exit code: the command's own, or 128 plus the number of the signal that ended it. */
export async function runChild(options: ChildOptions, process: NodeJS.Process): Promise<number> {
  let child: ChildProcess | undefined;
  const isTerminal = process.stdin.isTTY === true;
  const pass = (signal: NodeJS.Signals) => {
    if (!(isTerminal && sentByTerminal.has(signal))) child?.kill(signal);
  };
  // Before the command starts: a signal in between would end krane and orphan the command.
  for (const signal of passedOn) process.on(signal, pass);
  try {
    child = start(options);
    return await ended(child, options.file);
  } finally {
    for (const signal of passedOn) process.off(signal, pass);
  }
}

function start({ file, args, env }: ChildOptions): ChildProcess {
  try {
    return spawn(file, args, { stdio: "inherit", env: { ...env } });
  } catch (cause) {
    // Node throws this error, but emits all others as events.
    if (codeOf(cause) !== "E2BIG") throw cause;
    throw new ExecError(
      "unusable",
      "the environment variables and arguments exceed the Linux limit; each one may have at most 128 KiB",
      { cause },
    );
  }
}

function ended(child: ChildProcess, file: string): Promise<number> {
  return new Promise((resolve, reject) => {
    child.once("exit", (code, signal) =>
      resolve(code ?? signalBase + (signal === null ? 0 : constants.signals[signal])),
    );
    child.once("error", (cause) => {
      const isMissing = codeOf(cause) === "ENOENT";
      const reason = isMissing ? "command not found" : `cannot be run: ${cause.message}`;
      const code = isMissing ? "command_missing" : "command_unusable";
      reject(new ExecError(code, `${file}: ${reason}`, { cause }));
    });
  });
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}
