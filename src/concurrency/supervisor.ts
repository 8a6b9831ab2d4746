// Restarts a loop when it fails. A bug in one loop restarts that loop and nothing else, so it costs seconds of one
// controller instead of the process.
//
// - Two runs of the loop never overlap: the next one starts after the last one has ended, and the last one's signal is
//   aborted, for anything that it left running.
// - When the signal aborts, supervision ends without an error.
import { isAbort, linkSignals } from "./abort.ts";
import { createBackoff } from "./backoff.ts";
import { type Clock, sleep } from "./clock.ts";
import { notify } from "./notify.ts";
import type { Random } from "./random.ts";

const restartBackoff = { initialMs: 1_000, maxMs: 60_000, jitter: "equal" } as const;

// After this long a run counts as healthy, and its failure starts the back-off over. If this were shorter, a loop that
// fails at its first slow call would never back off.
const healthyAfterMs = 120_000;

export interface SupervisorDeps {
  readonly clock: Clock;
  readonly random: Random;
  /** Called for every failure, with the number of failures so far. Its own errors are ignored. */
  onFailure(name: string, error: unknown, restarts: number): void;
}

/** Runs until its signal aborts. */
export type Loop = (signal: AbortSignal) => Promise<void>;

/** Resolves when the signal has aborted and the loop has ended. Never rejects. */
export async function supervise(
  name: string,
  loop: Loop,
  deps: SupervisorDeps,
  signal: AbortSignal,
): Promise<void> {
  const backoff = createBackoff(restartBackoff, deps.random);
  let restarts = 0;
  while (!signal.aborted) {
    const startedMs = deps.clock.nowMs();
    const outcome = await runOnce(loop, signal);
    // A loop that ends after the signal has stopped as asked. An unrelated error on the way out is still passed to
    // onFailure, because nothing else would show it.
    if (signal.aborted && (outcome.kind === "ended" || isAbort(outcome.error, signal))) return;
    restarts += 1;
    const error = outcome.kind === "failed" ? outcome.error : new Error(`loop ${name} ended unexpectedly`);
    notify(() => deps.onFailure(name, error, restarts));
    if (deps.clock.nowMs() - startedMs >= healthyAfterMs) backoff.reset();
    await sleep(deps.clock, backoff.nextMs(), signal).catch(() => undefined);
  }
}

type RunOutcome = { readonly kind: "ended" } | { readonly kind: "failed"; readonly error: unknown };

async function runOnce(loop: Loop, signal: AbortSignal): Promise<RunOutcome> {
  const linked = linkSignals(signal);
  try {
    await loop(linked.signal);
    return { kind: "ended" };
  } catch (error) {
    return { kind: "failed", error };
  } finally {
    linked.abort();
  }
}
