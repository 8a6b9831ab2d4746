// Repeats a request for a moment while its address is unreachable. A Service whose pods have just become ready refuses
// connections until every node has the new rules, and that is not a problem to fix.
import { type Clock, sleep } from "../concurrency/clock.ts";

// Leaves most of the time limit of a check to the last try.
const triedForMs = 2_000;
// Few enough tries for a circuit breaker to stay closed.
const pauseMs = 1_000;

/** Resolves or rejects as the last call does. */
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
