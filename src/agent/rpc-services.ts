// What the RPC port serves: the services that the configuration asks for, and beside them the health check
// and the reflection of gRPC, which are there always and say which others are.
import type { DescService } from "@bufbuild/protobuf";
import type { ConnectRouter } from "@connectrpc/connect";
import type { Config } from "../config/config.ts";
import { Health as GrpcHealth } from "../gen/grpc/health/v1/health_pb.ts";
import { AgentService } from "../gen/krane/v1/agent_pb.ts";
import type { Health } from "../http/health.ts";
import type { HttpHandler } from "../http/http-handler.ts";
import { agentServiceRoutes } from "../services/agent-service.ts";
import { grpcHealthRoutes } from "../services/grpc-health.ts";
import { reflectionRoutes } from "../services/reflection.ts";
import { rpcRoutes } from "../services/rpc-routes.ts";
import { type KnowsCaller, tracedRouter } from "../services/served-call-spans.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { Traced } from "../telemetry/no-tracing.ts";
import type { AgentDeps } from "./agent-deps.ts";
import type { AgentView } from "./agent-view.ts";
import { createAgentSecret } from "./secrets.ts";

export interface ServedService {
  readonly service: DescService;
  /** Puts it into a router. */
  readonly routes: (router: ConnectRouter) => void;
  /** Absent: it answers strangers. */
  readonly knowsCaller?: KnowsCaller;
}

/** None without a token. */
export function agentServices(
  config: Config,
  view: AgentView,
  metrics: Metrics,
  deps: AgentDeps,
): readonly ServedService[] {
  if (config.agent === undefined) return [];
  const token = createAgentSecret(config.agent.token, deps);
  const { clock, log } = deps;
  const routes = agentServiceRoutes(view, token, { clock, log, metrics });
  return [{ service: AgentService, routes, knowsCaller: () => true }];
}

export function serviceRoutes(
  served: readonly ServedService[],
  health: Health,
  deps: Pick<AgentDeps, "clock"> & Traced,
): ReadonlyMap<string, HttpHandler> {
  const services = served.map(({ service }) => service);
  const names = new Set(services.map(({ typeName }) => typeName));
  return rpcRoutes((router) => {
    for (const { routes, knowsCaller = () => false } of served)
      routes(tracedRouter(router, deps.spans, knowsCaller));
    grpcHealthRoutes(health, names, deps)(router);
    reflectionRoutes([...services, GrpcHealth], deps)(router);
  });
}
