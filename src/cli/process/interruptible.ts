// Runs a command that Ctrl-C or SIGTERM can interrupt: it then exits with the usual code (130, 143), without a message.
import { exitCodeOfSignal } from "../exit-codes.ts";
import type { Io, StopSignal } from "../io.ts";
import { listenForStop } from "./stop-request.ts";

export async function runInterruptible(
  io: Io,
  work: (signal: AbortSignal) => Promise<number>,
): Promise<number> {
  let stoppedBy: StopSignal | undefined;
  const stop = listenForStop(io, (signal) => {
    stoppedBy ??= signal;
  });
  try {
    return await work(stop.signal);
  } catch (error) {
    if (stoppedBy !== undefined) return exitCodeOfSignal(stoppedBy);
    throw error;
  } finally {
    stop.release();
  }
}
