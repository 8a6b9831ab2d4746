// Implements Io with the real process.
import { spawn } from "node:child_process";
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
import { createEditedFile } from "./editor.ts";
import { ask, readInput } from "./input.ts";
import { readTextFile } from "./text-file.ts";

const stopSignals: readonly StopSignal[] = ["SIGINT", "SIGTERM"];
const lingerMs = 2_000;
const threadsGraceMs = 500;
const threadsPollMs = 5;
// Each write to a pipe is a system call that wakes the reader. Batching turns a thousand log lines per second into a few
// writes; nobody notices the delay.
const gatherMs = 50;
const gatherCharsMax = 64 * 1024;

export function createProcessIo(process: NodeJS.Process): Io & { end(code: number): void } {
  // Also called for unhandled rejections. The state can no longer be trusted, so the error is written synchronously and
  // the process exits.
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
    openUrl: (url) => openUrl(url, process.platform),
    ask: (question, signal) => ask(process, question, signal),
    askHidden: (question, signal) => askHidden(process, question, signal),
    openEditor: (name, command) => createEditedFile(name, { command }),
    onStopSignal(listener) {
      for (const signal of stopSignals) process.on(signal, listener);
      return () => {
        for (const signal of stopSignals) process.off(signal, listener);
      };
    },
    exit: (code) => void leave(process, code),
    // Exits explicitly, because the event loop may not be empty: an OTLP exporter that is about to retry holds a timer
    // that cannot be cancelled. Output is flushed first, but a stalled reader does not keep a stopped krane alive.
    end(code) {
      void Promise.race([flush(), delay(lingerMs)]).then(() =>
        leave(process, code === exitCodes.ok && stdout.failure ? exitCodes.failure : code),
      );
    },
  };
}

/**
 * process.exit() waits for threads that open files or resolve host names. A thread that waits for a server which never
 * responds would block the exit, whatever signals arrive; only SIGKILL ends such a process, at the cost of the exit code.
 */
async function leave(process: NodeJS.Process, code: number): Promise<void> {
  const hasBusyThreads = () =>
    process.getActiveResourcesInfo().some((name) => /^(FSReq|GetAddrInfo|GetNameInfo)/.test(name));
  for (let waitedMs = 0; hasBusyThreads() && waitedMs < threadsGraceMs; waitedMs += threadsPollMs)
    await delay(threadsPollMs);
  // Registered last, so that it runs after other exit listeners, such as the one that restores the terminal.
  if (hasBusyThreads()) process.once("exit", () => process.kill(process.pid, "SIGKILL"));
  process.exit(code);
}

interface ProcessOutput extends Output {
  /** Why not everything could be written; a reader that left early does not count. */
  readonly failure: Error | undefined;
  /** Resolves when everything is written, or cannot be. */
  flush(): Promise<void>;
}

function createOutput(stream: WriteStream): ProcessOutput {
  let broken: NodeJS.ErrnoException | undefined;
  // `krane ... | head` closes the pipe early: without a listener, that would crash with a stack trace, and stop an
  // agent whose log reader is gone.
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
  // Pipes and files are written synchronously, so the last lines get out however the process ends.
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

const openers: Readonly<Partial<Record<NodeJS.Platform, readonly string[]>>> = {
  darwin: ["open"],
  win32: ["rundll32", "url.dll,FileProtocolHandler"],
};

/** Starts the user's browser, which outlives krane, without its output. Resolves to false if there is no such program. */
function openUrl(url: string, platform: NodeJS.Platform): Promise<boolean> {
  const [command = "", ...args] = openers[platform] ?? ["xdg-open"];
  return new Promise((resolve) => {
    const child = spawn(command, [...args, url], { detached: true, stdio: "ignore" });
    child.once("error", () => resolve(false));
    child.once("spawn", () => {
      child.unref();
      resolve(true);
    });
  });
}
