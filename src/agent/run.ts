// The composition root: a checked configuration and the outside world in, a running
// agent out. The order of the steps is the order of the start; stopping goes the
// other way.
import type { Config } from "../config/config.ts";
import { SecretsService } from "../gen/krane/v1/secrets_pb.ts";
import { createHealth, type Health } from "../http/health.ts";
import { defaultLifecycle, runSteps, type Stage, type Step } from "../runtime/lifecycle.ts";
import { createMetrics } from "../telemetry/metrics.ts";
import type { AgentDeps } from "./agent-deps.ts";
import { AgentView } from "./agent-view.ts";
import { controllerStep } from "./controller-step.ts";
import { controllers } from "./controllers.ts";
import { healthChecks } from "./health-checks.ts";
import { checkNamedFiles } from "./named-files.ts";
import { metricsPortStep, rpcPortStep } from "./port-steps.ts";
import { agentServices } from "./rpc-services.ts";
import { createSchedulerPart } from "./scheduler-part.ts";
import { createSecretsPart } from "./secrets-step.ts";
import { createTracingPart, processMetricsStep } from "./telemetry-steps.ts";
import { upstreamStep } from "./upstream-step.ts";

/**
 * Runs until the signal aborts or something fails, and resolves after a clean stop.
 * Rejects with the error of a start that failed, or with an AggregateError of every
 * cause when a task or a clean-up failed or stopping took longer than 30 s.
 */
export async function run(config: Config, deps: AgentDeps, signal: AbortSignal): Promise<void> {
  const metrics = createMetrics(deps.build);
  const view = new AgentView({
    instanceId: config.instanceId,
    region: config.region.label,
    version: deps.build.version,
    startedAtMs: deps.clock.wallMs(),
  });
  const health = createHealth(healthChecks(view), deps);
  const tracing = createTracingPart(config, metrics, deps);
  const secrets = createSecretsPart(config, { metrics, tracing }, deps);
  const { places, services: scheduling } = createSchedulerPart(config, health, { ...deps, metrics });
  const services = [
    ...agentServices(config, view, metrics, deps),
    ...(secrets.routes ? [{ service: SecretsService, routes: secrets.routes }] : []),
    ...scheduling,
  ];
  const stages: Stage[] = [
    processMetricsStep(metrics, deps),
    tracing.step,
    namedFilesStep(config, deps),
    secrets.step,
    // Opened before what takes time to start and closed after it, so that whoever asks
    // meanwhile hears "not started" or "shutting down" instead of nothing.
    rpcPortStep(config, { health, services, tracing }, deps),
    metricsPortStep(config, metrics, deps),
    // Together: one that waits for its watches keeps no other from its work (K6).
    controllers.map((row) =>
      controllerStep(row, config, { view, metrics, tracing, scheduler: places }, deps),
    ),
    upstreamStep(config, { view, metrics, tracing }, deps),
    startedStep(health, deps),
  ];
  await runSteps(stages, defaultLifecycle, deps, signal);
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
