// grpc.health.v1.Health: the health of krane for gRPC clients and for the gRPC probes of Kubernetes. It
// says what /health/ready says: not serving before the start and on the way out, and serving otherwise,
// however the control plane and the API server are. Nobody has to show a token, as with the HTTP endpoints.
import { Code, ConnectError, type ConnectRouter, type ServiceImpl } from "@connectrpc/connect";
import type { Clock } from "../concurrency/clock.ts";
import {
  Health as HealthService,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from "../gen/grpc/health/v1/health_pb.ts";
import type { Health } from "../http/health.ts";
import { changesOf } from "./latest-changes.ts";
import { StreamPlaces } from "./stream-places.ts";

/** Anybody may open one, and may watch for as long as it likes. */
const watches = { streamsMax: 100, perHolderMax: 50 };

/** The name of one service and nothing else. */
const requestBytesMax = 4 * 1024;

/** `services`: the full names of what the port serves. */
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
    let told: ServingStatus | undefined;
    for await (const _ of changesOf(health, signal)) {
      // What a port serves is settled before it opens, so an unknown service stays unknown.
      const status = isServed ? now() : ServingStatus.SERVICE_UNKNOWN;
      const isLast = health.phase === "shutting down";
      if (status !== told) yield { status };
      told = status;
      // Whoever keeps watching a krane that stops would only keep it from stopping.
      if (isLast) return;
    }
  };
  return {
    check({ service }) {
      if (!isKnown(service)) throw new ConnectError("this port has no such service", Code.NotFound);
      return { status: now() };
    },
    watch: ({ service }, context) => places.hold(statuses(isKnown(service), context.signal), context),
  };
}
