// Cancellation is one AbortSignal handed down. What is here derives a signal from
// another for as long as one piece of work lasts, and takes its listeners and timers
// away afterwards: the agent's own signal lives as long as the process, so one
// listener left per call would be a leak without end.
import { CodedError } from "../errors/coded-error.ts";
import { onAbort } from "./abort-listener.ts";
import type { Clock } from "./clock.ts";

export class DeadlineError extends CodedError<"DeadlineError"> {
  override readonly name = "DeadlineError";
  readonly timeoutMs: number;

  constructor(timeoutMs: number) {
    super("deadline_exceeded", `not done within ${timeoutMs} ms`);
    this.timeoutMs = timeoutMs;
  }
}

export interface LinkedSignal {
  readonly signal: AbortSignal;
  /** Aborts this signal alone; the parents know nothing of it. */
  abort(reason?: unknown): void;
  /** Takes the listeners off the parents. Must be called when the work is over. */
  release(): void;
}

/**
 * A signal that aborts with the first of its parents, or on its own. Instead of
 * AbortSignal.any, which has no way to let go of a parent that outlives the work.
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
 * Runs the work with a deadline. Ends with the work, or rejects at once with a
 * DeadlineError or the signal's reason, also when the work does not listen to the
 * signal it is given: a hung call must not hang its caller. What such work comes to
 * later is dropped. The work's signal is dead weight after the end: nothing that
 * outlives the work may count on it.
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

// Errors are wrapped a few times at most; a longer chain, or one that bites its own
// tail, is not worth following.
const causeDepthMax = 8;

/**
 * Whether the error is how the work answered to this signal, rather than a failure of
 * its own. Always false before the signal aborts: an AbortError that comes from
 * somewhere else is a failure here.
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
