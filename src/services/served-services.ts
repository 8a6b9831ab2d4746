// The RPC services of a port, and beside them the health check and the reflection of gRPC, which every such port has
// and which list the others.
import type { DescService } from "@bufbuild/protobuf";
import type { ConnectRouter } from "@connectrpc/connect";
import type { Clock } from "../concurrency/clock.ts";
import { Health as GrpcHealth } from "../gen/grpc/health/v1/health_pb.ts";
import type { Health } from "../http/health.ts";
import type { HttpHandler } from "../http/http-handler.ts";
import type { Traced } from "../telemetry/no-tracing.ts";
import { grpcHealthRoutes } from "./grpc-health.ts";
import { reflectionRoutes } from "./reflection.ts";
import { rpcRoutes } from "./rpc-routes.ts";
import { type KnowsCaller, tracedRouter } from "./served-call-spans.ts";

export interface ServedService {
  readonly service: DescService;
  /** Puts it into a router. */
  readonly routes: (router: ConnectRouter) => void;
  /** Absent: it answers strangers. */
  readonly knowsCaller?: KnowsCaller;
}

export function serviceRoutes(
  served: readonly ServedService[],
  health: Health,
  deps: { readonly clock: Clock } & Traced,
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
