// The admin API, ready to be served beside the agents' API.
import { Code, ConnectError, type ConnectRouter, type Interceptor } from "@connectrpc/connect";
import type { Clock } from "../../concurrency/clock.ts";
import type { SecretSource } from "../../config/secret-source.ts";
import { AdminService } from "../../gen/krane/admin/v1/admin_pb.ts";
import { CallSlots } from "../../services/call-slots.ts";
import { createErrorInterceptor } from "../../services/rpc-errors.ts";
import type { Log } from "../../telemetry/log.ts";
import type { LogBroker } from "../logs/log-broker.ts";
import type { Store } from "../store.ts";
import { explainStoreError } from "../store-errors.ts";
import { createAdminAuth, type ProviderAccess } from "./admin-auth.ts";
import { createAdminService } from "./admin-service.ts";
import { limitRegions } from "./region-limits.ts";

/** The largest request is a deployment with its secrets, which are at most 96 KiB. */
const requestBytesMax = 1024 * 1024;
const compressBytesMin = 16 * 1024;
/** More concurrent calls would only wait for the database and slow down the agents. */
const callLimits = { runningMax: 32, waitingMax: 256 };

export interface AdminApiOptions {
  readonly store: Store;
  /** Lines of name, role and token. */
  readonly tokens: SecretSource;
  /** Lines of region and token; none of these tokens is accepted here. */
  readonly agentTokens?: SecretSource;
  /** Sees every call and every response as it goes out. */
  readonly observer?: Interceptor;
  /** Lets browsers sign in; without it, only tokens are accepted. */
  readonly sessions?: SessionOptions | undefined;
  /** Where the logs of pods come from; without it, there are none. */
  readonly logs?: LogBroker | undefined;
}

export interface SessionOptions {
  /** Whether the port itself does TLS. */
  readonly servesTls: boolean;
  /** What people of an OpenID Connect provider may do. */
  readonly people?: ProviderAccess | undefined;
  /** Generates unguessable text. */
  createToken(): string;
}

export interface AdminApi {
  routes(router: ConnectRouter): void;
  /** Ends the open streams. */
  close(): void;
}

export function createAdminApi(
  { store, tokens, agentTokens, observer, sessions: options, logs }: AdminApiOptions,
  deps: { readonly clock: Clock; readonly log: Log },
): AdminApi {
  const stopping = new AbortController();
  const sessions = options && { ...options, store: store.sessions, clock: deps.clock };
  const service = limitRegions(
    createAdminService({ ...deps, store, stopping: stopping.signal, sessions, logs }),
  );
  const interceptors = [
    ...(observer === undefined ? [] : [observer]),
    createAdminAuth({ tokens, agentTokens, sessions }, deps),
    createErrorInterceptor({ log: deps.log, explain: explainStoreError }),
    limitCalls(),
  ];
  const serving = { interceptors, readMaxBytes: requestBytesMax, compressMinBytes: compressBytesMin };
  return {
    routes: (router) => void router.service(AdminService, service, serving),
    close: () => stopping.abort(new ConnectError("the control plane is shutting down", Code.Unavailable)),
  };
}

/** Streams have their own limit. */
function limitCalls(): Interceptor {
  const slots = new CallSlots(callLimits);
  return (next) => (request) => {
    if (request.stream) return next(request);
    const running = slots.run(() => next(request), request.signal);
    if (running === undefined) {
      throw new ConnectError("too many concurrent calls; retry in a moment", Code.ResourceExhausted);
    }
    return running;
  };
}
