// A control plane on a port: Connect, gRPC and gRPC-Web over h2c, HTTP/1.1 or TLS, with
// health endpoints beside it.
import type { Clock } from "../concurrency/clock.ts";
import { createHealth, type Health, type HealthCheck } from "../http/health.ts";
import { routeByPath } from "../http/http-handler.ts";
import type { HttpLimits } from "../http/http-limits.ts";
import { startHttpPort } from "../http/http-port.ts";
import type { TlsFiles } from "../http/tls-certificate.ts";
import { rpcRoutes } from "../services/rpc-routes.ts";
import { tracedRouter } from "../services/served-call-spans.ts";
import type { Log } from "../telemetry/log.ts";
import type { Traced } from "../telemetry/spans.ts";
import type { AdminApi } from "./admin-service/admin-api.ts";
import type { ClusterApi } from "./cluster-api.ts";
import { ownUrl } from "./own-url.ts";

// An agent holds one connection per controller, and there may be a thousand agents.
// A stop tells every stream, so whoever is still there after two seconds does not read.
const serverLimits = { connectionsMax: 10_000, connectionsPerAddressMax: 5_000, drainTimeoutMs: 2_000 };

export interface ControlPlaneServerOptions {
  /** 0 takes a free one. */
  readonly port: number;
  /** The address to listen on. Default: every one that the machine has. */
  readonly host?: string;
  readonly tls?: TlsFiles;
  readonly limits?: Partial<HttpLimits>;
  /** The setting that the port comes from, for errors. */
  readonly setting?: string;
  /** What readiness shows in its body. */
  readonly checks?: ReadonlyMap<string, HealthCheck>;
}

export interface ControlPlaneServerDeps extends Traced {
  readonly clock: Clock;
  readonly log: Log;
  readTextFile(path: string, signal: AbortSignal): Promise<string>;
}

export interface RunningControlPlane {
  readonly port: number;
  /** Where an agent on this machine finds it. */
  readonly url: string;
  /** Rejects when the port fails although nobody closed it. */
  readonly failed: Promise<never>;
  /** Ends the streams with `unavailable`, lets calls end, then cuts what is left; at once when in a hurry. */
  close(hurry?: AbortSignal): Promise<void>;
}

/** What is served: the API of the agents, and beside it that of people where there is one. */
export interface ServedApis extends ClusterApi {
  readonly adminApi?: AdminApi | undefined;
}

export interface ControlPlaneServer {
  start(signal: AbortSignal): Promise<RunningControlPlane>;
}

export function createControlPlaneServer(
  { routes, streams, adminApi }: ServedApis,
  options: ControlPlaneServerOptions,
  deps: ControlPlaneServerDeps,
): ControlPlaneServer {
  return {
    async start(signal) {
      const health: Health = createHealth(options.checks ?? new Map(), deps);
      const rpcs = rpcRoutes((router) => {
        // Whoever is let in has shown a token.
        const traced = tracedRouter(router, deps.spans, () => true);
        routes(traced);
        adminApi?.routes(traced);
      });
      const handler = routeByPath(new Map([...rpcs, ...health.routes()]));
      const { port, host, tls, limits, setting = "port" } = options;
      const portOptions = { port, host, tls, setting, limits: { ...serverLimits, ...limits } };
      const http = await startHttpPort(handler, portOptions, deps, signal);
      health.markStarted();
      return {
        port: http.port,
        url: ownUrl({ scheme: tls ? "https" : "http", host, port: http.port }),
        failed: http.failed,
        async close(hurry = new AbortController().signal) {
          health.markShuttingDown();
          streams.close();
          adminApi?.close();
          await http.stop(hurry);
        },
      };
    },
  };
}
