// Waits for the world to reach a state by polling, so that no
// test sleeps for a guessed time. The deadline is generous: it is only ever
// spent by a test that fails, and then the last refusal is the message.
//
// An assert.ok in a probe has a message of its own. Without one Node reads the whole file, as it was
// compiled, to make one: seconds of work, in which whatever runs in this process stands still.

import { setTimeout as delay } from "node:timers/promises";

export interface EventuallyOptions {
  /** Default 30 s. */
  readonly deadlineMs?: number;
  readonly signal?: AbortSignal;
}

const pollEveryMs = 50;

/** Resolves with what `probe` returns once it no longer throws. */
export async function eventually<T>(
  what: string,
  probe: () => T | Promise<T>,
  options: EventuallyOptions = {},
): Promise<T> {
  const deadlineMs = options.deadlineMs ?? 30_000;
  const begun = performance.now();
  for (;;) {
    try {
      return await probe();
    } catch (error) {
      options.signal?.throwIfAborted();
      if (performance.now() - begun > deadlineMs) {
        const reason = error instanceof Error ? error.message : String(error);
        throw new Error(`not within ${deadlineMs} ms: ${what}; last seen: ${reason}`, { cause: error });
      }
    }
    await delay(pollEveryMs, undefined, options.signal === undefined ? {} : { signal: options.signal });
  }
}
