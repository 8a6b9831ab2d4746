// A control plane as something that can be served, on a port or within the process.
import type { ConnectRouter, Interceptor } from "@connectrpc/connect";
import type { Clock } from "../concurrency/clock.ts";
import type { Secret } from "../config/secret.ts";
import { ClusterService } from "../gen/ctrl/v1/cluster_service_pb.ts";
import { createBearerAuth } from "../services/bearer-auth.ts";
import { createErrorInterceptor } from "../services/rpc-errors.ts";
import type { Log } from "../telemetry/log.ts";
import { createClusterService } from "./cluster-service.ts";
import type { Store } from "./store.ts";
import { explainStoreError } from "./store-errors.ts";
import { StreamGate } from "./stream-gate.ts";

/** The largest report is the instances of one deployment, about 200 bytes each. */
const requestBytesMax = 4 * 1024 * 1024;
/** Below this the processor time of compressing costs more than the bytes. */
const compressBytesMin = 16 * 1024;

export interface ClusterApiOptions {
  readonly store: Store;
  /** Any of them lets a caller in. */
  readonly tokens: readonly Secret[];
  /** Called for authenticated calls alone, in this order. */
  readonly interceptors?: readonly Interceptor[];
}

export interface ClusterApiDeps {
  readonly clock: Clock;
  readonly log: Log;
}

export interface ClusterApi {
  routes(router: ConnectRouter): void;
  readonly streams: StreamGate;
}

export function createClusterApi(options: ClusterApiOptions, deps: ClusterApiDeps): ClusterApi {
  const { store, tokens, interceptors = [] } = options;
  const streams = new StreamGate();
  const service = createClusterService({ store, streams, clock: deps.clock });
  const handlerOptions = {
    interceptors: [
      createBearerAuth(tokens),
      createErrorInterceptor({ log: deps.log, explain: explainStoreError }),
      ...interceptors,
    ],
    readMaxBytes: requestBytesMax,
    compressMinBytes: compressBytesMin,
  };
  return {
    routes: (router) => void router.service(ClusterService, service, handlerOptions),
    streams,
  };
}
