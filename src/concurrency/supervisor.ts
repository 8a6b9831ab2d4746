// Keeps one loop running. A bug in one loop restarts that loop and nothing else, so
// that a single bad answer costs seconds of one controller instead of the process.
//
// - Two runs of the loop never overlap: the next one starts after the last one ended,
//   and what the last one left behind sees its own signal abort.
// - The end of the signal is the end of supervision, and not an error.
import { isAbort, linkSignals } from "./abort.ts";
import { createBackoff } from "./backoff.ts";
import { type Clock, sleep } from "./clock.ts";
import { notify } from "./notify.ts";
import type { Random } from "./random.ts";

const restartBackoff = { initialMs: 1_000, maxMs: 60_000, jitter: "equal" } as const;

// A loop that lived this long did its work; its next failure is a new one. Any
// shorter, and a loop that fails with its first slow call would never back off.
const healthyAfterMs = 120_000;

export interface SupervisorDeps {
  readonly clock: Clock;
  readonly random: Random;
  /** Told of every failure, with the number of failures so far. What it throws changes nothing. */
  onFailure(name: string, error: unknown, restarts: number): void;
}

/** Resolves when the signal has aborted and the loop has ended. Never rejects. */
export async function supervise(
  name: string,
  loop: (signal: AbortSignal) => Promise<void>,
  deps: SupervisorDeps,
  signal: AbortSignal,
): Promise<void> {
  const backoff = createBackoff(restartBackoff, deps.random);
  let restarts = 0;
  while (!signal.aborted) {
    const startedMs = deps.clock.nowMs();
    const outcome = await runOnce(loop, signal);
    // A loop that ends after the signal did what it was told; an error of its own
    // on the way out is still told, because nobody else will see it.
    if (signal.aborted && (outcome.kind === "ended" || isAbort(outcome.error, signal))) return;
    restarts += 1;
    const error =
      outcome.kind === "failed"
        ? outcome.error
        : new Error(`loop ${name} ended although nobody asked it to stop`);
    notify(() => deps.onFailure(name, error, restarts));
    if (deps.clock.nowMs() - startedMs >= healthyAfterMs) backoff.reset();
    await sleep(deps.clock, backoff.nextMs(), signal).catch(() => undefined);
  }
}

type RunOutcome = { readonly kind: "ended" } | { readonly kind: "failed"; readonly error: unknown };

async function runOnce(
  loop: (signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
): Promise<RunOutcome> {
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
