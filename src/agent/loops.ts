// Loops of the agent itself. A failure is counted as well as logged.

import type { Stoppable } from "../runtime/lifecycle.ts";
import { startLoop } from "../runtime/process-steps.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { AgentDeps } from "./agent-deps.ts";

export function startAgentLoop(
  name: string,
  loop: (signal: AbortSignal) => Promise<void>,
  deps: Pick<AgentDeps, "clock" | "random" | "log"> & { readonly metrics: Pick<Metrics, "internalPanics"> },
): Stoppable {
  const { clock, random, log, metrics } = deps;
  const onFailure = (_: string, error: unknown) => {
    metrics.internalPanics.inc({ caller: name, path: "background" });
    log.error("a loop failed and is started again", { operation: name, error });
  };
  return startLoop(name, loop, { clock, random, onFailure });
}
