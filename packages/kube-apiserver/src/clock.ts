// Interfaces for time and randomness, which come in as arguments, so that tests can control time and repeat runs.
import { setMaxListeners } from "node:events";

export interface Timer {
  cancel(): void;
}

export interface Clock {
  /** Wall time in milliseconds since 1970; may jump. For timestamps. */
  wallMs(): number;
  /** Monotonic milliseconds. For durations. */
  nowMs(): number;
  /** Calls back once after the delay, unless cancelled. */
  setTimer(delayMs: number, callback: () => void): Timer;
}

export interface Random {
  /** Uniform in [0, 1). */
  next(): number;
}

export interface ApiServerDeps {
  readonly clock: Clock;
  readonly random: Random;
}

// A longer delay overflows Node's timers, which then fire immediately.
const timerDelayMaxMs = 2 ** 31 - 1;

/** The clock and the randomness of this machine. */
export function systemDeps(): ApiServerDeps {
  return {
    clock: {
      wallMs: () => Date.now(),
      nowMs: () => performance.now(),
      setTimer(delayMs, callback) {
        const handle = setTimeout(callback, Math.min(Math.max(delayMs, 0), timerDelayMaxMs));
        return { cancel: () => clearTimeout(handle) };
      },
    },
    random: { next: () => Math.random() },
  };
}

/** Resolves after the delay; rejects with the signal's reason as soon as it aborts. */
export function sleep(clock: Clock, delayMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const timer = clock.setTimer(delayMs, () => {
      stopListening();
      resolve();
    });
    const stopListening = onAbort(signal, () => {
      timer.cancel();
      reject(signal.reason);
    });
  });
}

/**
 * Calls back once when the signal aborts, but not if it has already aborted. Returns a function that removes the listener.
 * Many controllers wait on one signal, so Node's leak warning is switched off.
 */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  setMaxListeners(0, signal);
  signal.addEventListener("abort", callback, { once: true });
  return () => signal.removeEventListener("abort", callback);
}
