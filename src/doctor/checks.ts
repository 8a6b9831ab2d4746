// Runs checks concurrently, each with its own time limit. A failing check does not affect the others, so that one run
// shows every problem.
import { DeadlineError, withTimeout } from "../concurrency/abort.ts";
import { type Clock, sleep } from "../concurrency/clock.ts";
import { type Finding, problem } from "./finding.ts";

export interface Check {
  readonly name: string;
  run(signal: AbortSignal): Promise<readonly Finding[]>;
}

export const checkTimeoutMs = 5_000;

/** Returns the findings in the order of the checks. Rejects only with the signal's reason. */
export async function runChecks(
  checks: readonly Check[],
  { clock }: { readonly clock: Clock },
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const findings = await Promise.all(
    checks.map(async ({ name, run }) => {
      try {
        return await withTimeout(clock, checkTimeoutMs, signal, run);
      } catch (error) {
        signal.throwIfAborted();
        return [failed(name, error)];
      }
    }),
  );
  return findings.flat();
}

function failed(name: string, error: unknown): Finding {
  if (error instanceof DeadlineError) {
    const finding = `no response within ${checkTimeoutMs / 1_000} s`;
    return problem(name, finding, "check whether it is overloaded, or a firewall drops the packets");
  }
  return problem(name, describeError(error), "fix what the message says");
}

/** The message, followed by those of its causes that it does not already include. */
export function describeError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause === undefined ? "" : describeError(error.cause);
  return cause === "" || error.message.includes(cause) ? error.message : `${error.message}: ${cause}`;
}

// Leaves most of the time limit of a check to the last try.
const triedForMs = 2_000;
// Few enough tries for a circuit breaker to stay closed.
const pauseMs = 1_000;

/**
 * Repeats a request for a moment while its address is unreachable. A Service whose pods have just become ready refuses
 * connections until every node has the new rules, and that is not a problem to fix. Resolves or rejects as the last call
 * does.
 */
export async function retryWhileUnreachable<T>(
  call: () => Promise<T>,
  isUnreachable: (error: unknown) => boolean,
  clock: Clock,
  signal: AbortSignal,
): Promise<T> {
  const begunMs = clock.nowMs();
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!isUnreachable(error) || clock.nowMs() - begunMs >= triedForMs) throw error;
    }
    await sleep(clock, pauseMs, signal);
  }
}
