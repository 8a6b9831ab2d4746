// The lifecycle steps that krane's processes share: ports, telemetry, background loops, and the last step, which marks
// the process as started.
import type { Clock } from "../concurrency/clock.ts";
import { type SupervisorDeps, supervise } from "../concurrency/supervisor.ts";
import type { Health } from "../http/health.ts";
import { type HttpHandler, routeByPath, serveReads } from "../http/http-handler.ts";
import { type HttpPortDeps, type HttpPortOptions, startHttpPort } from "../http/http-port.ts";
import { type ServedService, serviceRoutes } from "../services/served-services.ts";
import type { Log } from "../telemetry/log.ts";
import type { BuildInfo, Metrics } from "../telemetry/metrics.ts";
import type { OtlpDeps, OtlpOptions } from "../telemetry/otlp.ts";
import { createNoTracing, type Traced, type Tracing } from "../telemetry/spans.ts";
import type { LifecycleStep, Stoppable } from "./lifecycle.ts";

export interface PortDeps extends HttpPortDeps {
  /** The address that ports listen on, and the setting that has it. Default: all addresses. */
  readonly listenOn?: { readonly host: string; readonly setting: string } | undefined;
}

/** For the processes whose address is in `listen_host`. */
export function listenOn({ listenHost }: { readonly listenHost?: string }): Pick<PortDeps, "listenOn"> {
  return { listenOn: listenHost === undefined ? undefined : { host: listenHost, setting: "listen_host" } };
}

/** Opens nothing when the port is 0. `routes` is called when the port opens. */
function portStep(
  name: string,
  routes: () => ReadonlyMap<string, HttpHandler>,
  options: HttpPortOptions,
  deps: PortDeps,
): LifecycleStep {
  return {
    name,
    async start(signal) {
      if (options.port === 0) return undefined;
      const place = deps.listenOn && { host: deps.listenOn.host, hostSetting: deps.listenOn.setting };
      const started = await startHttpPort(routeByPath(routes()), { ...options, ...place }, deps, signal);
      deps.log.info("listening", { setting: options.setting, port: started.port });
      return started;
    },
  };
}

export interface RpcPortParts {
  readonly health: Health;
  readonly services: readonly ServedService[];
  readonly tracing: Traced;
  /** Further handlers by path. */
  readonly routes?: ReadonlyMap<string, HttpHandler>;
}

/** RPC services and health endpoints. */
export function rpcPortStep(
  { rpcPort: port, tls }: { readonly rpcPort: number } & Pick<HttpPortOptions, "tls">,
  { health, services, tracing, routes: further = new Map() }: RpcPortParts,
  deps: PortDeps,
): LifecycleStep {
  const routes = () =>
    new Map([
      ...serviceRoutes(services, health, { ...deps, spans: tracing.spans }),
      ...health.routes(),
      ...further,
    ]);
  return portStep("RPC port", routes, { port, setting: "rpc_port", tls }, deps);
}

/** Serves /metrics for Prometheus. */
export function metricsPortStep(
  port: number,
  { contentType, render }: Pick<Metrics, "contentType" | "render">,
  deps: PortDeps,
): LifecycleStep {
  const page = serveReads(async () => ({ status: 200, contentType, body: await render() }));
  const setting = "observability.metrics.prometheus_port";
  return portStep("metrics port", () => new Map([["/metrics", page]]), { port, setting }, deps);
}

/** Collects metrics of the process itself. */
export function processMetricsStep(
  metrics: Metrics,
  deps: { readonly clock: Clock; readonly log: Log },
): LifecycleStep {
  return {
    name: "process metrics",
    async start() {
      metrics.start(deps);
      return { stop: async () => metrics.stop() };
    },
  };
}

export interface TracingPartOptions {
  readonly sampleRate: number;
  /** Who sends the spans and metrics. */
  readonly service: { readonly name: string; readonly instanceId: string; readonly region: string };
}

export interface TracingPartDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly build: BuildInfo;
  readonly env: Readonly<Record<string, string | undefined>>;
}

export interface TracingPart extends Traced {
  readonly step: LifecycleStep;
}

/**
 * Tracing and pushed metrics; off without options. `spans` is set once the step has started, so steps that create spans
 * must start later and read it then.
 */
export function createTracingPart(
  options: TracingPartOptions | undefined,
  metrics: Metrics,
  deps: TracingPartDeps,
): TracingPart {
  let spans: Traced["spans"];
  const step: LifecycleStep = {
    name: "tracing",
    async start() {
      if (options === undefined) return undefined;
      const service = { namespace: "unkey", version: deps.build.version, ...options.service };
      const started = await startTracing({ sampleRate: options.sampleRate, service, metrics }, deps);
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

export interface StartedStepOptions {
  /** Its name in the log. */
  readonly program: string;
  /** Further fields of the log line. */
  readonly fields?: Readonly<Record<string, unknown>>;
  readonly health?: Health;
  onStarted?(): void;
}

/** The last step: marks the process as started and, because steps stop in reverse, as shutting down before anything stops. */
export function startedStep(
  { program, fields, health, onStarted }: StartedStepOptions,
  { log }: { readonly log: Log },
): LifecycleStep {
  return {
    name: "health",
    async start() {
      health?.markStarted();
      log.info(`${program} started`, fields);
      onStarted?.();
      return {
        async stop() {
          log.info(`${program} is stopping`);
          health?.markShuttingDown();
        },
      };
    },
  };
}

/** Runs a loop until it is stopped. When it throws, the failure is reported and only this loop restarts. */
export function startLoop(
  name: string,
  loop: (signal: AbortSignal) => Promise<void>,
  deps: SupervisorDeps,
): Stoppable {
  const stopping = new AbortController();
  const ended = supervise(name, loop, deps, stopping.signal);
  return {
    async stop() {
      stopping.abort();
      await ended;
    },
  };
}

interface TracingOptions extends Pick<OtlpOptions, "sampleRate" | "service"> {
  /** Pushed once a minute if given. */
  readonly metrics?: Metrics;
}

export interface TracingDeps extends OtlpDeps {
  /** Environment variables. The exporters read endpoints and headers from process.env themselves. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

/**
 * Starts tracing and the push of metrics over OTLP. The standard OTEL_ variables can still switch off traces, metrics or
 * both. OpenTelemetry's SDK is loaded only when it is needed, which saves about 10 MB otherwise. Nothing is registered
 * globally: callers get a Spans, or undefined when tracing is off. A collector that is down or slow delays only
 * shutdown(), and by a limited time.
 */
export async function startTracing(options: TracingOptions, deps: TracingDeps): Promise<Tracing> {
  const { env } = deps;
  const tracesOn = env["OTEL_TRACES_EXPORTER"] !== "none";
  const metrics = env["OTEL_METRICS_EXPORTER"] === "none" ? undefined : options.metrics;
  const disabled = env["OTEL_SDK_DISABLED"]?.toLowerCase() === "true";
  if (disabled || (!tracesOn && !metrics)) return createNoTracing();
  const { startOtlp } = await import("../telemetry/otlp.ts");
  return startOtlp({ ...options, tracesOn, metrics }, deps);
}
