// Turns SIGINT and SIGTERM into an AbortSignal. A second signal skips the clean-up and exits immediately, with the exit
// code that shells use for the signal.
import type { Log } from "../../telemetry/log.ts";
import { exitCodeOfSignal, exitCodes, isBug, leavesOf } from "../exit-codes.ts";
import type { Io, StopSignal } from "../io.ts";

export interface StopRequest {
  readonly signal: AbortSignal;
  /** For a command that can also be stopped in other ways. */
  abort(): void;
  /** Stops listening. Must be called when the command is over. */
  release(): void;
}

export function listenForStop(io: Io, onFirst?: (signal: StopSignal) => void): StopRequest {
  const stop = new AbortController();
  const release = io.onStopSignal((signal) => {
    if (stop.signal.aborted) io.exit(exitCodeOfSignal(signal));
    onFirst?.(signal);
    stop.abort();
  });
  return { signal: stop.signal, abort: () => stop.abort(), release };
}

/** A program that is configured and not yet running. */
export interface ReadyProgram {
  readonly log: Log;
  /** Resolves after a clean stop. */
  run(signal: AbortSignal): Promise<void>;
}

/** Runs a program until SIGINT or SIGTERM. `prepare` returns undefined after printing the problems of the configuration. */
export async function runUntilStopped(
  io: Io,
  prepare: (signal: AbortSignal) => Promise<ReadyProgram | undefined>,
): Promise<number> {
  let log: Log | undefined;
  const stop = listenForStop(io, (signal) => log?.info("stop signal received", { signal }));
  try {
    const program = await prepare(stop.signal);
    if (program === undefined) return exitCodes.config;
    log = program.log;
    await program.run(stop.signal);
    log.info("krane stopped");
    return exitCodes.ok;
  } catch (error) {
    if (error === stop.signal.reason) return exitCodes.ok;
    log?.error("krane failed", { error: leavesOf(error).some(isBug) ? error : withoutStack(error) });
    throw error;
  } finally {
    stop.release();
  }
}

const causesMax = 5;

/** The message of an expected failure says what to do; a dozen frames would only hide it. */
function withoutStack(error: unknown, depth = 0): unknown {
  if (!(error instanceof Error) || depth === causesMax) return undefined;
  const { name, message, cause } = error;
  const inner = (each: unknown) => withoutStack(each, depth + 1);
  return {
    name,
    message,
    ...("code" in error && { code: error.code }),
    ...(cause !== undefined && { cause: inner(cause) }),
    ...(error instanceof AggregateError && { errors: error.errors.map(inner) }),
  };
}
