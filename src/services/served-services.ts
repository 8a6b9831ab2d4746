// Combines the RPC services of a port with gRPC health checks and gRPC reflection, which every RPC port has.
import type { DescService } from "@bufbuild/protobuf";
import type { ConnectRouter, HandlerContext } from "@connectrpc/connect";
import type { Clock } from "../concurrency/clock.ts";
import { Health as GrpcHealth } from "../gen/grpc/health/v1/health_pb.ts";
import { ServerReflection } from "../gen/grpc/reflection/v1/reflection_pb.ts";
import { ServerReflection as ServerReflectionAlpha } from "../gen/grpc/reflection/v1alpha/reflection_pb.ts";
import type { Health } from "../http/health.ts";
import type { HttpHandler } from "../http/http-handler.ts";
import type { Traced } from "../telemetry/spans.ts";
import { type CallEventsDeps, loggedRouter } from "./call-events.ts";
import { grpcHealthRoutes } from "./grpc-health.ts";
import { createReflectionIndex, type ReflectionRequest } from "./reflection-index.ts";
import { rpcRoutes } from "./rpc-routes.ts";
import { type KnowsCaller, tracedRouter } from "./served-call-spans.ts";
import { StreamPlaces } from "./stream-places.ts";

export interface ServedService {
  readonly service: DescService;
  /** Registers it with a router. */
  readonly routes: (router: ConnectRouter) => void;
  /** Absent: callers are not authenticated. */
  readonly knowsCaller?: KnowsCaller;
}

export function serviceRoutes(
  served: readonly ServedService[],
  health: Health,
  deps: CallEventsDeps & Traced,
): ReadonlyMap<string, HttpHandler> {
  const services = served.map(({ service }) => service);
  const names = new Set(services.map(({ typeName }) => typeName));
  return rpcRoutes((router) => {
    for (const { routes, knowsCaller = () => false } of served)
      routes(loggedRouter(tracedRouter(router, deps.spans, knowsCaller), deps));
    grpcHealthRoutes(health, names, deps)(router);
    reflectionRoutes([...services, GrpcHealth], deps)(router);
  });
}

/** A reflection request is only a name and a number. */
const requestBytesMax = 4 * 1024;

/** A little less than the port's request timeout, so that a stream ends with a response. */
const lifetimeMs = 50_000;
const places = { streamsMax: 100, perHolderMax: 50, lifetimeMs };

interface ReflectionMessage {
  readonly host: string;
  readonly messageRequest: ReflectionRequest;
}

/**
 * Serves grpc.reflection for tools such as grpcurl, from the file descriptors that the code was generated with. It needs
 * no token, because the contract is public. v1alpha is the same contract under an older name. Both list themselves too.
 */
export function reflectionRoutes(
  served: readonly DescService[],
  deps: { readonly clock: Clock },
): (router: ConnectRouter) => void {
  const index = createReflectionIndex([...served, ServerReflection, ServerReflectionAlpha]);
  const streams = new StreamPlaces(places, deps);
  const responses = async function* (requests: AsyncIterable<ReflectionMessage>) {
    for await (const { host, messageRequest } of requests) {
      const originalRequest = { host, messageRequest };
      yield { validHost: host, originalRequest, messageResponse: index.respond(messageRequest) };
    }
  };
  const serverReflectionInfo = (requests: AsyncIterable<ReflectionMessage>, context: HandlerContext) =>
    streams.hold(responses(requests), context);
  const options = { readMaxBytes: requestBytesMax };
  return (router) => {
    router.service(ServerReflection, { serverReflectionInfo }, options);
    router.service(ServerReflectionAlpha, { serverReflectionInfo }, options);
  };
}
