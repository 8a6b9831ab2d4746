// Loops of the agent itself, which run until they are stopped. A bug in one restarts that
// one, is counted, and ends nothing else.
import { supervise } from "../concurrency/supervisor.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { AgentDeps } from "./agent-deps.ts";

export interface RunningLoop {
  /** Resolves when it has ended. */
  stop(): Promise<void>;
}

export function startLoop(
  name: string,
  loop: (signal: AbortSignal) => Promise<void>,
  deps: Pick<AgentDeps, "clock" | "random" | "log"> & { readonly metrics: Pick<Metrics, "internalPanics"> },
): RunningLoop {
  const { clock, random, log, metrics } = deps;
  const stopping = new AbortController();
  const onFailure = (_: string, error: unknown) => {
    metrics.internalPanics.inc({ caller: name, path: "background" });
    log.error("a loop failed and is started again", { operation: name, error });
  };
  const ended = supervise(name, loop, { clock, random, onFailure }, stopping.signal);
  return {
    async stop() {
      stopping.abort();
      await ended;
    },
  };
}
