// The composition root: a checked configuration and the outside world in, a running
// agent out. The order of the steps is the order of the start; stopping goes the
// other way.
import type { Clock } from "../concurrency/clock.ts";
import type { Config } from "../config/config.ts";
import { createHealth, type Health } from "../services/health.ts";
import { routeByPath, serveReads } from "../services/http-handler.ts";
import { type HttpPortOptions, startHttpPort } from "../services/http-port.ts";
import type { Log } from "../telemetry/log.ts";
import { type BuildInfo, createMetrics, type Metrics } from "../telemetry/metrics.ts";
import { startTracing } from "../telemetry/tracing.ts";
import { defaultLifecycle, runSteps, type Step } from "./lifecycle.ts";
import { checkNamedFiles } from "./named-files.ts";

export interface AgentDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly build: BuildInfo;
  readonly env: Readonly<Record<string, string | undefined>>;
  readTextFile(path: string, signal: AbortSignal): Promise<string>;
  /** Told once, when everything has started. */
  onStarted?(): void;
}

/**
 * Runs until the signal aborts or something fails, and resolves after a clean stop.
 * Rejects with the error of a start that failed, or with an AggregateError of every
 * cause when a task or a clean-up failed or stopping took longer than 30 s.
 */
export async function run(config: Config, deps: AgentDeps, signal: AbortSignal): Promise<void> {
  const metrics = createMetrics(deps.build);
  const health = createHealth(new Map(), deps);
  const steps: Step[] = [
    processMetricsStep(metrics, deps),
    tracingStep(config, metrics, deps),
    namedFilesStep(config, deps),
    // Opened before what takes time to start and closed after it, so that whoever asks
    // meanwhile hears "not started" or "shutting down" instead of nothing.
    rpcPortStep(config, health, deps),
    metricsPortStep(config, metrics, deps),
    startedStep(health, deps),
  ];
  await runSteps(steps, defaultLifecycle, deps, signal);
}

function processMetricsStep(metrics: Metrics, deps: AgentDeps): Step {
  return {
    name: "process metrics",
    async start() {
      metrics.start(deps);
      return { stop: async () => metrics.stop() };
    },
  };
}

function tracingStep(config: Config, metrics: Metrics, deps: AgentDeps): Step {
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

function namedFilesStep(config: Config, deps: AgentDeps): Step {
  return {
    name: "files named in the configuration",
    async start(signal) {
      await checkNamedFiles(config, deps, signal);
      return undefined;
    },
  };
}

function rpcPortStep(config: Config, health: Health, deps: AgentDeps): Step {
  const handler = routeByPath(health.routes());
  return {
    name: "RPC port",
    async start(signal) {
      const options: HttpPortOptions = { port: config.rpcPort, setting: "rpc_port", tls: config.tls };
      const port = await startHttpPort(handler, options, deps, signal);
      deps.log.info("listening", { setting: options.setting, port: port.port });
      return port;
    },
  };
}

function metricsPortStep(config: Config, metrics: Metrics, deps: AgentDeps): Step {
  const page = serveReads(async () => ({
    status: 200,
    contentType: metrics.contentType,
    body: await metrics.render(),
  }));
  return {
    name: "metrics port",
    async start(signal) {
      const { prometheusPort } = config.observability.metrics;
      if (prometheusPort === 0) return undefined;
      const setting = "observability.metrics.prometheus_port";
      const handler = routeByPath(new Map([["/metrics", page]]));
      const port = await startHttpPort(handler, { port: prometheusPort, setting }, deps, signal);
      deps.log.info("listening", { setting, port: port.port });
      return port;
    },
  };
}

function startedStep(health: Health, deps: AgentDeps): Step {
  return {
    name: "health",
    async start() {
      health.markStarted();
      deps.log.info("krane started");
      deps.onStarted?.();
      return {
        async stop() {
          deps.log.info("krane is stopping");
          health.markShuttingDown();
        },
      };
    },
  };
}
