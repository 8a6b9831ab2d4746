// The agents' API of a control plane, ready to be served on a port or in-process.
import type { ConnectRouter, Interceptor } from "@connectrpc/connect";
import type { Clock } from "../concurrency/clock.ts";
import { ClusterService } from "../gen/ctrl/v1/cluster_service_pb.ts";
import { createErrorInterceptor } from "../services/rpc-errors.ts";
import type { Log } from "../telemetry/log.ts";
import { createClusterService } from "./cluster-service.ts";
import type { ChangeSource } from "./desired-feed.ts";
import type { LogBroker } from "./logs/log-broker.ts";
import type { Store } from "./store.ts";
import { explainStoreError } from "./store-errors.ts";
import type { StreamAdmission } from "./stream-admission.ts";
import { StreamGate } from "./stream-gate.ts";

/** The largest report lists the instances of one deployment, about 200 bytes each. */
const requestBytesMax = 4 * 1024 * 1024;
/** Below this size, compression costs more CPU than the bytes are worth. */
const compressBytesMin = 16 * 1024;

export interface ClusterApiOptions {
  readonly store: Store;
  /** Rejects unauthenticated calls and sets the regions that a caller may act for; see agent-auth.ts. */
  readonly auth: Interceptor;
  /** Run in this order, for authenticated calls only. */
  readonly interceptors?: readonly Interceptor[];
  /** Sees every call and every response as it goes out. */
  readonly observer?: Interceptor;
  /** What streams read from; defaults to the store. */
  readonly changes?: ChangeSource;
  /** Limits how fast streams are accepted; without it, all are accepted at once. */
  readonly admission?: StreamAdmission;
  /** Passes the logs of pods to those who read them. */
  readonly logs?: LogBroker | undefined;
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
  const { store, auth, interceptors = [], observer, changes = store, admission, logs } = options;
  const streams = new StreamGate(admission);
  const service = createClusterService({ store, changes, streams, clock: deps.clock, logs });
  const handlerOptions = {
    interceptors: [
      ...(observer === undefined ? [] : [observer]),
      auth,
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
