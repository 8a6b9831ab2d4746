// The RPC services of a port, and beside them the health check and the reflection of gRPC, which every such port has
// and which list the others.
import type { DescService } from "@bufbuild/protobuf";
import type { ConnectRouter, HandlerContext } from "@connectrpc/connect";
import type { Clock } from "../concurrency/clock.ts";
import { Health as GrpcHealth } from "../gen/grpc/health/v1/health_pb.ts";
import { ServerReflection } from "../gen/grpc/reflection/v1/reflection_pb.ts";
import { ServerReflection as ServerReflectionAlpha } from "../gen/grpc/reflection/v1alpha/reflection_pb.ts";
import type { Health } from "../http/health.ts";
import type { HttpHandler } from "../http/http-handler.ts";
import type { Traced } from "../telemetry/spans.ts";
import { grpcHealthRoutes } from "./grpc-health.ts";
import { createReflectionIndex, type ReflectionQuestion } from "./reflection-index.ts";
import { rpcRoutes } from "./rpc-routes.ts";
import { type KnowsCaller, tracedRouter } from "./served-call-spans.ts";
import { StreamPlaces } from "./stream-places.ts";

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

// grpc.reflection: what the services of the port look like, for grpcurl and its like. The file descriptors
// that the code was generated with are the answer, so it cannot differ from what is served. Nobody has to
// show a token: the contract is public.
//
// v1alpha is the same contract under an older name; the answers are made once.

/** Names and numbers; whoever sends more has mistaken the port. */
const requestBytesMax = 4 * 1024;

/** A little less than a port gives a request, so that a stream ends with an answer. */
const lifetimeMs = 50_000;
const places = { streamsMax: 100, perHolderMax: 50, lifetimeMs };

interface Request {
  readonly host: string;
  readonly messageRequest: ReflectionQuestion;
}

/** Itself included: tools that list services show what they speak. */
export function reflectionRoutes(
  served: readonly DescService[],
  deps: { readonly clock: Clock },
): (router: ConnectRouter) => void {
  const index = createReflectionIndex([...served, ServerReflection, ServerReflectionAlpha]);
  const streams = new StreamPlaces(places, deps);
  const answers = async function* (requests: AsyncIterable<Request>) {
    for await (const { host, messageRequest } of requests) {
      const originalRequest = { host, messageRequest };
      yield { validHost: host, originalRequest, messageResponse: index.answer(messageRequest) };
    }
  };
  const serverReflectionInfo = (requests: AsyncIterable<Request>, context: HandlerContext) =>
    streams.hold(answers(requests), context);
  const options = { readMaxBytes: requestBytesMax };
  return (router) => {
    router.service(ServerReflection, { serverReflectionInfo }, options);
    router.service(ServerReflectionAlpha, { serverReflectionInfo }, options);
  };
}
