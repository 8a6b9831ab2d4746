// The real outside world: this process.
import { writeSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import type { WriteStream } from "node:tty";
import { renderError } from "./error-text.ts";
import { exitCodes } from "./exit-codes.ts";
import type { Io, Output, StopSignal } from "./io.ts";
import { readTextFile } from "./text-file.ts";

const stopSignals: readonly StopSignal[] = ["SIGINT", "SIGTERM"];
const lingerMs = 2_000;

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
  return {
    stdout: createOutput(process.stdout),
    stderr: createOutput(process.stderr),
    nodeVersion: process.version,
    readTextFile,
    onStopSignal(listener) {
      for (const signal of stopSignals) process.on(signal, listener);
      return () => {
        for (const signal of stopSignals) process.off(signal, listener);
      };
    },
    exit: (code) => process.exit(code),
    end(code) {
      process.exitCode = code;
      // What is written still gets out; a reader that takes nothing does not keep a
      // stopped krane alive.
      void delay(lingerMs, undefined, { ref: false }).then(() => process.exit(code));
    },
  };
}

function createOutput(stream: WriteStream): Output {
  let broken = false;
  // `krane ... | head` closes the pipe early: without a listener that would end in a
  // stack trace, and would end an agent because nobody reads its logs.
  stream.on("error", () => {
    broken = true;
  });
  return {
    isTerminal: stream.isTTY === true,
    get backlogBytes() {
      return broken ? Number.POSITIVE_INFINITY : stream.writableLength;
    },
    write(text) {
      if (!broken) stream.write(text);
    },
  };
}
