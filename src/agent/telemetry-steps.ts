// What observes the process itself, and where that goes.
import type { Config } from "../config/config.ts";
import type { Step } from "../runtime/lifecycle.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { Traced } from "../telemetry/no-tracing.ts";
import { startTracing } from "../telemetry/tracing.ts";
import type { AgentDeps } from "./agent-deps.ts";

export function processMetricsStep(metrics: Metrics, deps: AgentDeps): Step {
  return {
    name: "process metrics",
    async start() {
      metrics.start(deps);
      return { stop: async () => metrics.stop() };
    },
  };
}

export interface TracingPart extends Traced {
  readonly step: Step;
}

/** Its spans are there once its step has started; whoever makes spans starts later and asks then. */
export function createTracingPart(config: Config, metrics: Metrics, deps: AgentDeps): TracingPart {
  let spans: Traced["spans"];
  const step: Step = {
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
      spans = started.spans;
      return { stop: () => started.shutdown() };
    },
  };
  return {
    step,
    get spans() {
      return spans;
    },
  };
}
