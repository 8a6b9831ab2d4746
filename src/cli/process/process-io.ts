// The real outside world: this process.
import { writeSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import type { WriteStream } from "node:tty";
import { createSystemClock, type Timer } from "../../concurrency/clock.ts";
import { invokedAs } from "../announcement.ts";
import { renderError } from "../error-text.ts";
import { exitCodes } from "../exit-codes.ts";
import type { Io, Output, StopSignal } from "../io.ts";
import { askHidden } from "../terminal/hidden-prompt.ts";
import { createTerminal } from "../terminal/terminal.ts";
import { ask, readInput } from "./input.ts";
import { readTextFile } from "./text-file.ts";

const stopSignals: readonly StopSignal[] = ["SIGINT", "SIGTERM"];
const lingerMs = 2_000;
const threadsGraceMs = 500;
const threadsPollMs = 5;
// A write to a pipe is a call of the kernel that wakes whoever reads it. A thousand lines in a second are
// told in a few of them; nobody notices that a line is so much younger than what it tells.
const gatherMs = 50;
const gatherCharsMax = 64 * 1024;

export function createProcessIo(process: NodeJS.Process): Io & { end(code: number): void } {
  // Also called for rejections that nobody handles. Nothing after this can be trusted,
  // so it is said without the event loop and the process ends.
  process.on("uncaughtException", (error) => {
    try {
      writeSync(process.stderr.fd, renderError(error, "bug"));
    } finally {
      process.exit(exitCodes.bug);
    }
  });
  const stdout = createOutput(process.stdout);
  const stderr = createOutput(process.stderr);
  const flush = async () => {
    await stdout.flush();
    if (stdout.failure) stderr.write(renderError(`standard output: ${stdout.failure.message}`, "failure"));
    await stderr.flush();
  };
  return {
    terminal: () => createTerminal(process),
    stdout,
    stderr,
    program: invokedAs(process.argv[1], process.cwd()),
    nodeVersion: process.version,
    readTextFile,
    readInput: (path, bytesMax, signal) => readInput({ path, stdin: process.stdin, bytesMax }, signal),
    ask: (question, signal) => ask(process, question, signal),
    askHidden: (question, signal) => askHidden(process, question, signal),
    onStopSignal(listener) {
      for (const signal of stopSignals) process.on(signal, listener);
      return () => {
        for (const signal of stopSignals) process.off(signal, listener);
      };
    },
    exit: (code) => void leave(process, code),
    // Explicit, because the event loop need not be empty: an OTLP exporter that was about to
    // try again has a timer that nobody can reach. What is written still gets out; a reader
    // that takes nothing does not keep a stopped krane alive.
    end(code) {
      void Promise.race([flush(), delay(lingerMs)]).then(() =>
        leave(process, code === exitCodes.ok && stdout.failure ? exitCodes.failure : code),
      );
    },
  };
}

/**
 * process.exit() waits for the threads that open files and look up names. One that asks a
 * server which never answers would keep krane from ending, whatever signals it gets; only
 * SIGKILL ends such a process, at the price of the exit code.
 */
async function leave(process: NodeJS.Process, code: number): Promise<void> {
  const hasBusyThreads = () =>
    process.getActiveResourcesInfo().some((name) => /^(FSReq|GetAddrInfo|GetNameInfo)/.test(name));
  for (let waitedMs = 0; hasBusyThreads() && waitedMs < threadsGraceMs; waitedMs += threadsPollMs)
    await delay(threadsPollMs);
  // After the listeners that put something right at the end, such as a raw terminal.
  if (hasBusyThreads()) process.once("exit", () => process.kill(process.pid, "SIGKILL"));
  process.exit(code);
}

interface ProcessOutput extends Output {
  /** Why not everything could be written; a reader that left early is no failure. */
  readonly failure: Error | undefined;
  /** Resolves when everything was written or cannot be. */
  flush(): Promise<void>;
}

function createOutput(stream: WriteStream): ProcessOutput {
  let broken: NodeJS.ErrnoException | undefined;
  // `krane ... | head` closes the pipe early: without a listener that would end in a
  // stack trace, and would end an agent because nobody reads its logs.
  stream.on("error", (error) => {
    broken ??= error;
  });
  const clock = createSystemClock();
  let gathered = "";
  let timer: Timer | undefined;
  const pass = () => {
    timer?.cancel();
    timer = undefined;
    if (!broken && gathered !== "") stream.write(gathered);
    gathered = "";
  };
  // Pipes and files are written at once, so what was told last gets out however the process ends.
  process.on("exit", pass);
  return {
    isTerminal: stream.isTTY === true,
    get columns() {
      return stream.columns;
    },
    get backlogBytes() {
      return broken ? Number.POSITIVE_INFINITY : stream.writableLength + gathered.length;
    },
    get failure() {
      return broken?.code === "EPIPE" ? undefined : broken;
    },
    write(text) {
      gathered += text;
      if (stream.isTTY || gathered.length >= gatherCharsMax) pass();
      else timer ??= clock.setTimer(gatherMs, pass);
    },
    flush() {
      pass();
      return new Promise((resolve) => void stream.write("", () => resolve()));
    },
  };
}
