// Exponential back-off with jitter. Each failure raises a cap up to a maximum, and the wait is random below the cap, so
// that many clients that lost the same peer do not come back at the same moment and overload it.
import { type Random, uniform } from "./random.ts";

export interface BackoffOptions {
  /** The cap of the first wait. */
  readonly initialMs: number;
  /** No wait is longer than this. */
  readonly maxMs: number;
  /** No wait is shorter than this. Default 0. */
  readonly minMs?: number;
  /** The cap grows by this factor with each attempt. Default 2. */
  readonly factor?: number;
  /**
   * "full" is random in [minMs, cap] and spreads most: for reconnects.
   * "equal" is random in [cap / 2, cap] and never retries almost at once: for retries of a key.
   */
  readonly jitter: "full" | "equal";
}

export interface Backoff {
  /** The next wait; each call counts as one more attempt. */
  nextMs(): number;
  /** Starts again from the first wait, after a success. */
  reset(): void;
}

export function createBackoff(options: BackoffOptions, random: Random): Backoff {
  checkBackoff(options);
  let attempts = 0;
  return {
    nextMs: () => backoffDelayMs(options, attempts++, random),
    reset: () => {
      attempts = 0;
    },
  };
}

/** The wait after a number of earlier attempts, for callers that count themselves. */
export function backoffDelayMs(options: BackoffOptions, earlierAttempts: number, random: Random): number {
  const { initialMs, maxMs, minMs = 0, factor = 2, jitter } = options;
  // The power overflows to Infinity after some hundred attempts; Math.min turns that into maxMs, and initialMs > 0
  // prevents NaN.
  const capMs = Math.min(maxMs, initialMs * factor ** earlierAttempts);
  const floorMs = jitter === "full" ? minMs : Math.max(minMs, capMs / 2);
  return uniform(random, floorMs, capMs);
}

/** Throws for options that would give a wait of NaN, and so a hot loop. */
export function checkBackoff({ initialMs, maxMs, minMs = 0, factor = 2 }: BackoffOptions): void {
  const ordered = minMs >= 0 && minMs <= initialMs && initialMs > 0 && initialMs <= maxMs;
  if (!ordered || !Number.isFinite(maxMs) || !(factor >= 1 && Number.isFinite(factor)))
    throw new RangeError(
      `back-off needs 0 <= minMs <= initialMs <= maxMs, 0 < initialMs, maxMs finite and factor >= 1: ` +
        `got minMs ${minMs}, initialMs ${initialMs}, maxMs ${maxMs}, factor ${factor}`,
    );
}

const retryAfterMinMs = 1_000;
const retryAfterMaxMs = 60_000;

/**
 * Clamps a server's Retry-After to 1 to 60 seconds: a broken or hostile server must neither cause a hot loop nor delay an
 * object for a day. NaN counts as the shortest.
 */
export function clampRetryAfterMs(hintMs: number): number {
  return hintMs > retryAfterMinMs ? Math.min(hintMs, retryAfterMaxMs) : retryAfterMinMs;
}
