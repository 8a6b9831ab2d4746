// Polls until the world has reached a state, so that no case sleeps for a guessed time.
import { setTimeout as delay } from "node:timers/promises";

const pollEveryMs = 50;

/** Resolves with what `probe` returns once it no longer throws. */
export async function eventually<T>(
  what: string,
  probe: () => T | Promise<T>,
  { deadlineMs = 30_000 } = {},
): Promise<T> {
  const begun = performance.now();
  for (;;) {
    try {
      return await probe();
    } catch (error) {
      if (performance.now() - begun > deadlineMs) {
        const reason = error instanceof Error ? error.message : String(error);
        throw new Error(`not within ${deadlineMs} ms: ${what}; last seen: ${reason}`, { cause: error });
      }
    }
    await delay(pollEveryMs);
  }
}
