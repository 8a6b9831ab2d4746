// Sends a heartbeat to the control plane, also when there is nothing to report. A failed heartbeat is not retried: the
// next one follows soon, and the control plane counts the missing ones.
import { isAbort } from "../concurrency/abort.ts";
import { type Clock, sleep } from "../concurrency/clock.ts";
import type { Log } from "../telemetry/log.ts";

const intervalMs = 30_000;

export interface HeartbeatDeps {
  readonly clock: Clock;
  readonly log?: Log;
}

/** Beats at once and then every 30 s. Resolves when the signal aborts; never rejects. */
export async function runHeartbeat(
  beat: (signal: AbortSignal) => Promise<void>,
  { clock, log }: HeartbeatDeps,
  signal: AbortSignal,
): Promise<void> {
  let healthy = true;
  while (!signal.aborted) {
    const startedMs = clock.nowMs();
    try {
      await beat(signal);
      healthy = true;
    } catch (error) {
      if (isAbort(error, signal)) return;
      // Logged once per outage; the streams log the rest.
      if (healthy) log?.warn("heartbeat failed", { error });
      healthy = false;
    }
    const restMs = Math.max(0, startedMs + intervalMs - clock.nowMs());
    await sleep(clock, restMs, signal).catch(() => undefined);
  }
}
