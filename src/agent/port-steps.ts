// The two ports: RPCs and health on one, metrics on the other, which is optional.
import type { Config } from "../config/config.ts";
import type { Health } from "../http/health.ts";
import { type HttpHandler, routeByPath, serveReads } from "../http/http-handler.ts";
import { startHttpPort } from "../http/http-port.ts";
import type { Step } from "../runtime/lifecycle.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { Traced } from "../telemetry/no-tracing.ts";
import type { AgentDeps } from "./agent-deps.ts";
import { type ServedService, serviceRoutes } from "./rpc-services.ts";

export interface RpcPortParts {
  readonly health: Health;
  readonly services: readonly ServedService[];
  readonly tracing: Traced;
}

export function rpcPortStep(
  config: Config,
  { health, services, tracing }: RpcPortParts,
  deps: AgentDeps,
): Step {
  const routes = () =>
    new Map([...serviceRoutes(services, health, { ...deps, spans: tracing.spans }), ...health.routes()]);
  return portStep("RPC port", routes, { port: config.rpcPort, setting: "rpc_port", tls: config.tls }, deps);
}

export function metricsPortStep(config: Config, metrics: Metrics, deps: AgentDeps): Step {
  const page = serveReads(async () => ({
    status: 200,
    contentType: metrics.contentType,
    body: await metrics.render(),
  }));
  const setting = "observability.metrics.prometheus_port";
  const port = config.observability.metrics.prometheusPort;
  return portStep("metrics port", () => new Map([["/metrics", page]]), { port, setting }, deps);
}

type PortOptions = Parameters<typeof startHttpPort>[1];

/** Port 0 is no port. The routes are asked for when it opens. */
function portStep(
  name: string,
  routes: () => ReadonlyMap<string, HttpHandler>,
  options: PortOptions,
  deps: AgentDeps,
): Step {
  return {
    name,
    async start(signal) {
      if (options.port === 0) return undefined;
      const { listenHost: host } = deps;
      const started = await startHttpPort(routeByPath(routes()), { ...options, host }, deps, signal);
      deps.log.info("listening", { setting: options.setting, port: started.port });
      return started;
    },
  };
}
