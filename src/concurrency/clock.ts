// The clock. All of krane gets the time from this interface, so that tests and simulations can run hours of back-off,
// resync and expiry in milliseconds, deterministically. Nothing else in src/ may call Date, setTimeout or performance.
import { onAbort } from "./abort-listener.ts";

// Longer timers overflow Node's 32-bit delay and fire at once, which would turn a long back-off into a hot loop.
const timerDelayMaxMs = 2 ** 31 - 1;

export interface Timer {
  cancel(): void;
}

export interface Clock {
  /** Wall time in milliseconds since 1970; may jump. For timestamps that leave the process. */
  wallMs(): number;
  /** Monotonic milliseconds; never goes back. For every duration, deadline and timeout. */
  nowMs(): number;
  /** Calls back once after the delay, unless cancelled. A pending timer keeps the process alive. */
  setTimer(delayMs: number, callback: () => void): Timer;
}

export function createSystemClock(): Clock {
  return {
    wallMs: () => Date.now(),
    nowMs: () => performance.now(),
    setTimer(delayMs, callback) {
      // Node treats NaN as 1 ms, so a miscalculated delay would become a hot loop.
      if (Number.isNaN(delayMs)) throw new RangeError("the delay of a timer is not a number");
      const handle = setTimeout(callback, Math.min(Math.max(delayMs, 0), timerDelayMaxMs));
      return { cancel: () => clearTimeout(handle) };
    },
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

/** The time in UTC, without fractions of a second, as Kubernetes writes it. */
export function utcText(wallMs: number): string {
  return new Date(wallMs).toISOString().replace(/\.\d+Z$/, "Z");
}

const nanosPerMs = 1_000_000n;

/** The nanoseconds since 1970 of a time such as `2026-01-02T03:04:05.123456789Z`; undefined for other text. */
export function utcNanos(text: string): bigint | undefined {
  const [, seconds, fraction = "", zone] =
    /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)$/.exec(text) ?? [];
  const ms = Date.parse(`${seconds}${zone}`);
  return Number.isNaN(ms) ? undefined : BigInt(ms) * nanosPerMs + BigInt(fraction.padEnd(9, "0"));
}
