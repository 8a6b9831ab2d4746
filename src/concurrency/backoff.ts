// How long to wait before trying again. Each failure raises a cap up to a maximum,
// and the wait is drawn at random below the cap, because a fleet that lost the same
// peer at the same moment would otherwise come back in step and knock it over again.
import { type Random, uniform } from "./random.ts";

export interface BackoffOptions {
  /** The cap of the first wait. */
  readonly initialMs: number;
  /** No wait is longer than this, however many came before it. */
  readonly maxMs: number;
  /** No wait is shorter than this. Default 0. */
  readonly minMs?: number;
  /** The cap grows by this factor with each attempt. Default 2. */
  readonly factor?: number;
  /**
   * "full" draws from [minMs, cap] and spreads a crowd widest: reconnects.
   * "equal" draws from [cap / 2, cap] and never retries almost at once: one key's retries.
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

/** The wait after a number of earlier attempts, for callers that keep the count themselves. */
export function backoffDelayMs(options: BackoffOptions, earlierAttempts: number, random: Random): number {
  const { initialMs, maxMs, minMs = 0, factor = 2, jitter } = options;
  // The power overflows to Infinity after some hundred attempts; the minimum takes
  // that back to the maximum, and initialMs > 0 keeps it from being NaN.
  const capMs = Math.min(maxMs, initialMs * factor ** earlierAttempts);
  const floorMs = jitter === "full" ? minMs : Math.max(minMs, capMs / 2);
  return uniform(random, floorMs, capMs);
}

/** Refuses options that would make a wait of NaN, and so a hot loop. */
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
 * A server's hint when to come back, kept within 1 to 60 seconds: a broken or hostile
 * one must neither make a hot loop nor park an object for a day. NaN counts as the shortest.
 */
export function clampRetryAfterMs(hintMs: number): number {
  return hintMs > retryAfterMinMs ? Math.min(hintMs, retryAfterMaxMs) : retryAfterMinMs;
}
