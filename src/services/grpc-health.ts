// Implements grpc.health.v1.Health for gRPC clients and for the gRPC probes of Kubernetes. It reports the same as
// /health/ready: not serving before the start and during shutdown, and serving otherwise, regardless of the control
// plane and the API server. Like the HTTP endpoints, it needs no token.
import { Code, ConnectError, type ConnectRouter, type ServiceImpl } from "@connectrpc/connect";
import type { Clock } from "../concurrency/clock.ts";
import {
  Health as HealthService,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from "../gen/grpc/health/v1/health_pb.ts";
import type { Health } from "../http/health.ts";
import { changesOf } from "./latest-changes.ts";
import { StreamPlaces } from "./stream-places.ts";

/** Limited, because anyone may open a watch, for any time. */
const watches = { streamsMax: 100, perHolderMax: 50 };

/** A request is only the name of one service. */
const requestBytesMax = 4 * 1024;

/** `services`: the full names of the services on the port. */
export function grpcHealthRoutes(
  health: Pick<Health, "phase" | "subscribe">,
  services: ReadonlySet<string>,
  deps: { readonly clock: Clock },
): (router: ConnectRouter) => void {
  const options = { readMaxBytes: requestBytesMax };
  return (router) => void router.service(HealthService, createGrpcHealth(health, services, deps), options);
}

function createGrpcHealth(
  health: Pick<Health, "phase" | "subscribe">,
  services: ReadonlySet<string>,
  deps: { readonly clock: Clock },
): ServiceImpl<typeof HealthService> {
  const places = new StreamPlaces(watches, deps);
  const isKnown = (service: string) => service === "" || services.has(service);
  const now = () => (health.phase === "running" ? ServingStatus.SERVING : ServingStatus.NOT_SERVING);
  const statuses = async function* (isServed: boolean, signal: AbortSignal) {
    let sent: ServingStatus | undefined;
    for await (const _ of changesOf(health, signal)) {
      // A port's services are fixed before it opens, so an unknown service stays unknown.
      const status = isServed ? now() : ServingStatus.SERVICE_UNKNOWN;
      const isLast = health.phase === "shutting down";
      if (status !== sent) yield { status };
      sent = status;
      // An open watch would only delay the shutdown.
      if (isLast) return;
    }
  };
  return {
    check({ service }) {
      if (!isKnown(service)) throw new ConnectError("unknown service", Code.NotFound);
      return { status: now() };
    },
    watch: ({ service }, context) => places.hold(statuses(isKnown(service), context.signal), context),
  };
}
