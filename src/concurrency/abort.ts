// Derives an AbortSignal from others for the duration of a piece of work, and removes its listeners and timers afterwards.
// The agent's own signal lives as long as the process, so one listener left per call would be a leak.
import { CodedError } from "../errors/coded-error.ts";
import { onAbort } from "./abort-listener.ts";
import type { Clock } from "./clock.ts";

export class DeadlineError extends CodedError<"DeadlineError"> {
  override readonly name = "DeadlineError";
  readonly timeoutMs: number;

  constructor(timeoutMs: number) {
    super("deadline_exceeded", `timed out after ${timeoutMs} ms`);
    this.timeoutMs = timeoutMs;
  }
}

export interface LinkedSignal {
  readonly signal: AbortSignal;
  /** Aborts this signal only, not its parents. */
  abort(reason?: unknown): void;
  /** Removes the listeners from the parents. Must be called when the work is over. */
  release(): void;
}

/**
 * A signal that aborts with the first of its parents, or on its own. AbortSignal.any cannot detach from a parent that
 * outlives the work.
 */
export function linkSignals(...parents: readonly AbortSignal[]): LinkedSignal {
  const controller = new AbortController();
  const onParentAbort = () => abort(parents.find((parent) => parent.aborted)?.reason);
  const stopListening = parents.map((parent) => onAbort(parent, onParentAbort));
  const release = () => {
    for (const stop of stopListening) stop();
  };
  const abort = (reason?: unknown) => {
    release();
    controller.abort(reason);
  };
  if (parents.some((parent) => parent.aborted)) onParentAbort();
  return { signal: controller.signal, abort, release };
}

/**
 * Runs the work with a deadline. Settles with the work, or rejects at once with a DeadlineError or the signal's reason,
 * even if the work ignores its signal: a hung call must not hang its caller. A later result is dropped. The signal does
 * not abort after the work has ended, so nothing that outlives the work may depend on it.
 */
export function withTimeout<T>(
  clock: Clock,
  timeoutMs: number,
  parents: AbortSignal | readonly AbortSignal[],
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const signals = "aborted" in parents ? [parents] : parents;
    for (const signal of signals) signal.throwIfAborted();
    const controller = new AbortController();
    const giveUp = (reason: unknown) => {
      release();
      reject(reason);
      controller.abort(reason);
    };
    const timer = clock.setTimer(timeoutMs, () => giveUp(new DeadlineError(timeoutMs)));
    const stopListening = signals.map((signal) => onAbort(signal, () => giveUp(signal.reason)));
    const release = () => {
      timer.cancel();
      for (const stop of stopListening) stop();
    };
    const run = async () => work(controller.signal);
    run().then(
      (value) => {
        release();
        resolve(value);
      },
      (error) => {
        release();
        reject(error);
      },
    );
  });
}

// Errors are wrapped a few times at most; longer or circular chains are not followed.
const causeDepthMax = 8;

/**
 * Whether the error was caused by this signal, rather than by a failure. Always false before the signal aborts: an
 * AbortError from elsewhere is a failure.
 */
export function isAbort(error: unknown, signal: AbortSignal): boolean {
  if (!signal.aborted) return false;
  let current = error;
  for (let depth = 0; depth < causeDepthMax; depth++) {
    if (current === signal.reason) return true;
    if (!(current instanceof Error)) return false;
    if (current.name === "AbortError") return true;
    current = current.cause;
  }
  return false;
}
