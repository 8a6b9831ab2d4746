// What observes the process itself, and where that goes.
import type { Config } from "../config/config.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { startTracing } from "../telemetry/tracing.ts";
import type { AgentDeps } from "./agent-deps.ts";
import type { Step } from "./lifecycle.ts";

export function processMetricsStep(metrics: Metrics, deps: AgentDeps): Step {
  return {
    name: "process metrics",
    async start() {
      metrics.start(deps);
      return { stop: async () => metrics.stop() };
    },
  };
}

export function tracingStep(config: Config, metrics: Metrics, deps: AgentDeps): Step {
  return {
    name: "tracing",
    async start() {
      const { tracing } = config.observability;
      if (!tracing) return undefined;
      const service = {
        namespace: "unkey",
        name: "krane",
        version: deps.build.version,
        instanceId: config.instanceId,
        region: config.region.label,
      };
      const started = await startTracing({ sampleRate: tracing.sampleRate, service, metrics }, deps);
      return { stop: () => started.shutdown() };
    },
  };
}
