// The two ports: RPCs and health on one, metrics on the other, which is optional.
import type { Config } from "../config/config.ts";
import { agentServiceRoutes } from "../services/agent-service.ts";
import type { Health } from "../services/health.ts";
import { type HttpHandler, routeByPath, serveReads } from "../services/http-handler.ts";
import { startHttpPort } from "../services/http-port.ts";
import { rpcRoutes } from "../services/rpc-routes.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { AgentDeps } from "./agent-deps.ts";
import type { AgentView } from "./agent-view.ts";
import type { Step } from "./lifecycle.ts";
import { createAgentSecret } from "./secrets.ts";

export interface RpcPortParts {
  readonly health: Health;
  readonly view: AgentView;
  readonly metrics: Metrics;
}

export function rpcPortStep(config: Config, parts: RpcPortParts, deps: AgentDeps): Step {
  const routes = new Map([...serviceRoutes(config, parts, deps), ...parts.health.routes()]);
  return portStep("RPC port", routes, { port: config.rpcPort, setting: "rpc_port", tls: config.tls }, deps);
}

function serviceRoutes(
  config: Config,
  { view, metrics }: RpcPortParts,
  deps: AgentDeps,
): ReadonlyMap<string, HttpHandler> {
  if (config.agent === undefined) return new Map();
  const token = createAgentSecret(config.agent.token, deps);
  const { clock, log } = deps;
  return rpcRoutes(agentServiceRoutes(view, token, { clock, log, metrics }));
}

export function metricsPortStep(config: Config, metrics: Metrics, deps: AgentDeps): Step {
  const page = serveReads(async () => ({
    status: 200,
    contentType: metrics.contentType,
    body: await metrics.render(),
  }));
  const setting = "observability.metrics.prometheus_port";
  const port = config.observability.metrics.prometheusPort;
  return portStep("metrics port", new Map([["/metrics", page]]), { port, setting }, deps);
}

type PortOptions = Parameters<typeof startHttpPort>[1];

/** Port 0 is no port. */
function portStep(
  name: string,
  routes: ReadonlyMap<string, HttpHandler>,
  options: PortOptions,
  deps: AgentDeps,
): Step {
  return {
    name,
    async start(signal) {
      if (options.port === 0) return undefined;
      const started = await startHttpPort(routeByPath(routes), options, deps, signal);
      deps.log.info("listening", { setting: options.setting, port: started.port });
      return started;
    },
  };
}
