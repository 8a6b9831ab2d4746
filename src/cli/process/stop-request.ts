// SIGINT and SIGTERM as an AbortSignal. Whoever asks twice does not want to wait for the
// clean-up, and gets what a shell expects of a process that a signal ended.
import { exitCodeOfSignal } from "../exit-codes.ts";
import type { Io, StopSignal } from "../io.ts";

export interface StopRequest {
  readonly signal: AbortSignal;
  /** For a command that can be ended in other ways too. */
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
