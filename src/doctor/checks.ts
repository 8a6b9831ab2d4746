// Runs checks concurrently, each with its own time limit. A failing check does not affect the others, so that one run
// shows every problem.
import { DeadlineError, withTimeout } from "../concurrency/abort.ts";
import type { Clock } from "../concurrency/clock.ts";
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
