// The composition root of the agent: turns a checked configuration and the host's dependencies into a running agent.
// The steps start in the order listed, and stop in reverse.
import type { Config } from "../config/config.ts";
import { runHeartbeat } from "../control-plane/heartbeat.ts";
import { inEachTerm } from "../engine/take-over.ts";
import { AgentService } from "../gen/krane/v1/agent_pb.ts";
import { SchedulerService } from "../gen/krane/v1/scheduler_pb.ts";
import { SecretsService } from "../gen/krane/v1/secrets_pb.ts";
import { createHealth, type Health } from "../http/health.ts";
import { allKinds } from "../kinds/kinds.ts";
import { defaultLifecycle, type LifecycleStep, runSteps, type Stage } from "../runtime/lifecycle.ts";
import {
  createTracingPart,
  listenOn,
  metricsPortStep,
  processMetricsStep,
  rpcPortStep,
  startedStep,
} from "../runtime/process-steps.ts";
import { agentServiceRoutes } from "../services/agent-service.ts";
import { createDocumentFetch, defaultDocumentLimits } from "../services/document-fetch.ts";
import type { ForwardCall } from "../services/leader-calls.ts";
import { findSchedulerTarget, schedulerServiceRoutes } from "../services/scheduler-service.ts";
import type { ServedService } from "../services/served-services.ts";
import { createMetrics, type Metrics } from "../telemetry/metrics.ts";
import type { AgentDeps } from "./agent-deps.ts";
import { AgentView, healthChecks } from "./agent-view.ts";
import { loadControlPlane } from "./control-plane-access.ts";
import { type ControllerParts, controllerStep } from "./controller-step.ts";
import { RunningControllers, startAgentLoop } from "./controllers.ts";
import { createForwarding } from "./forwarding.ts";
import { createLeasePart, type LeasePart } from "./lease-step.ts";
import { createLeaseView } from "./lease-view.ts";
import { logsStep } from "./logs-step.ts";
import { checkNamedFiles } from "./named-files.ts";
import { PeerVersion } from "./peer-version.ts";
import { createSealPart } from "./seal-step.ts";
import { createAgentSecret } from "./secrets.ts";
import { createSecretsPart } from "./secrets-step.ts";
import { runStateReports } from "./state-reports.ts";

/**
 * Runs until the signal aborts or something fails, and resolves after a clean stop. Rejects with the error of a failed
 * start, or with an AggregateError of all causes when a task or a clean-up failed or stopping took longer than 30 s.
 */
export async function run(config: Config, deps: AgentDeps, signal: AbortSignal): Promise<void> {
  const metrics = createMetrics(deps.build);
  const seal = createSealPart(config, deps);
  const identity = {
    instanceId: config.instanceId,
    region: config.region.label,
    version: deps.build.version,
    startedAtMs: deps.clock.wallMs(),
    servesLogs: config.logs.enabled,
    clusterId: () => seal.current()?.clusterId,
  };
  const lease = createLeasePart(config, metrics, deps);
  const view = new AgentView(identity, config.isolation, createLeaseView(config, lease, deps));
  if (config.isolation.runtimeClass === "")
    deps.log.warn("trusted code only: new deployments run without a sandbox", {
      remedy: "install gVisor and remove isolation.runtime_class from the configuration",
    });
  const health = createHealth(healthChecks(view), { ...deps, facts: () => view.leaseFacts() });
  const tracing = createTracingPart(tracingOptions(config), metrics, deps);
  const running = new RunningControllers();
  const secrets = createSecretsPart(config, { metrics, tracing, running, seal }, deps);
  const forwarding = createForwarding(config, { lease, seal, metrics }, deps);
  const { forward } = forwarding;
  const scheduling = createSchedulerServices(
    config,
    { health, running, view, forward },
    { ...deps, metrics },
  );
  const services = [
    ...agentServices(config, { view, forward, metrics }, deps),
    ...(secrets.routes ? [{ service: SecretsService, routes: secrets.routes }] : []),
    ...scheduling,
  ];
  const { network } = deps;
  const portDeps = { ...deps, ...listenOn(config) };
  const stages: Stage[] = [
    ...(network ? [] : [processMetricsStep(metrics, deps)]),
    tracing.step,
    namedFilesStep(config, deps),
    secrets.step,
    // Stops after the port, which waits for calls in flight.
    forwarding.step,
    // Opens before the slow steps and closes after them, so that probes get "not started" or "shutting down" meanwhile
    // instead of a refused connection.
    network?.serve(services) ??
      rpcPortStep(config, { health, services, tracing, routes: forwarding.routes }, portDeps),
    ...(network ? [] : [metricsPortStep(config.observability.metrics.prometheusPort, metrics, portDeps)]),
    seal.step,
    lease.step,
    // In one stage: a controller that waits for its watches does not delay the others (K6).
    (network?.kinds ?? allKinds).map((kind) =>
      controllerStep(kind, config, { view, metrics, tracing, running, seal, lease }, deps),
    ),
    upstreamStep(config, { view, metrics, tracing, lease }, deps),
    ...(config.logs.enabled ? [logsStep(config, { metrics, tracing, running, seal, lease }, deps)] : []),
    startedStep({ program: "krane", health, onStarted: () => deps.onStarted?.() }, deps),
  ];
  await runSteps(stages, defaultLifecycle, deps, signal);
}

function tracingOptions({ observability: { tracing }, instanceId, region }: Config) {
  return tracing && { ...tracing, service: { name: "krane", instanceId, region: region.label } };
}

/** Empty without a token. */
function agentServices(
  config: Config,
  { view, forward, metrics }: ServedParts & { readonly metrics: Metrics },
  deps: AgentDeps,
): readonly ServedService[] {
  if (config.agent === undefined) return [];
  const token = createAgentSecret(config.agent.token, deps);
  const { clock, log } = deps;
  const routes = agentServiceRoutes(view, token, { clock, log, metrics, forward });
  return [{ service: AgentService, routes, knowsCaller: () => true }];
}

function namedFilesStep(config: Config, deps: AgentDeps): LifecycleStep {
  return {
    name: "files named in the configuration",
    async start(signal) {
      await checkNamedFiles(config, deps, signal);
      return undefined;
    },
  };
}

interface ServedParts {
  readonly view: AgentView;
  readonly forward: ForwardCall;
}

interface SchedulingParts extends ServedParts {
  readonly health: Pick<Health, "phase">;
  readonly running: RunningControllers;
}

/**
 * SchedulerService and the controllers behind it; empty without a token. The port opens before the controllers start,
 * but orders are accepted only when all of krane has started.
 */
function createSchedulerServices(
  { scheduler }: Pick<Config, "scheduler">,
  { health, running, view, forward }: SchedulingParts,
  deps: AgentDeps & { readonly metrics: Metrics },
): readonly ServedService[] {
  if (scheduler === undefined) return [];
  const target = () => (health.phase === "running" ? findSchedulerTarget(running) : undefined);
  const { clock, log, metrics } = deps;
  const fetchDocument = scheduler.scrape ? createDocumentFetch(defaultDocumentLimits, deps) : undefined;
  const token = createAgentSecret(scheduler.token, deps);
  const standby = () => view.standby();
  const serviceDeps = { clock, log, metrics, target, standby, forward, fetchDocument };
  const routes = schedulerServiceRoutes(token, serviceDeps);
  return [{ service: SchedulerService, routes, knowsCaller: () => true }];
}

/**
 * Sends heartbeats and state reports on a connection of their own, so that no controller can block them (K6). Only the
 * leader sends them: the control plane knows one agent per region. A standby only says that it is there.
 */
function upstreamStep(
  config: Config,
  { view, metrics, tracing, lease }: ControllerParts & { readonly lease: LeasePart },
  agentDeps: AgentDeps,
): LifecycleStep {
  const self = { instanceId: config.instanceId, version: agentDeps.build.version };
  return {
    name: "heartbeat and state reports",
    async start(signal) {
      const deps = { ...agentDeps, metrics, spans: tracing.spans };
      const { heartbeat, reportAgentState, reportStandby, close } = await loadControlPlane(
        config,
        "agent",
        deps,
        signal,
      );
      const version = new PeerVersion({ ...deps, view });
      const beat = async (running: AbortSignal) => {
        await version.whenKnown(running);
        await heartbeat(running);
      };
      const standBy = async (running: AbortSignal) => {
        if (lease.status()?.role !== "standby") return;
        await version.whenKnown(running);
        await reportStandby(self, running);
      };
      const send: typeof reportAgentState = async (report, running) =>
        version.noteResponse(await reportAgentState(report, running));
      const loops = [
        startAgentLoop(
          "heartbeat",
          (running) => inEachTerm(lease, (_, term) => runHeartbeat(beat, deps, term), running),
          deps,
        ),
        startAgentLoop("standby reports", (running) => runHeartbeat(standBy, deps, running), deps),
        startAgentLoop(
          "state reports",
          (running) =>
            inEachTerm(lease, (_, term) => runStateReports({ ...deps, view, send }, term), running),
          deps,
        ),
      ];
      return {
        async stop(hurry) {
          await Promise.all(loops.map((loop) => loop.stop(hurry)));
          await close();
        },
      };
    },
  };
}
