// Serves a control plane on a port: Connect, gRPC and gRPC-Web over h2c, HTTP/1.1 or TLS,
// together with the health endpoints.
import type { Clock } from "../concurrency/clock.ts";
import type { PageFiles } from "../dashboard/page-files.ts";
import { dashboardPath, serveDashboard } from "../dashboard/serve-dashboard.ts";
import { createHealth, type Health, type HealthCheck } from "../http/health.ts";
import { routeByPath } from "../http/http-handler.ts";
import type { HttpLimits } from "../http/http-limits.ts";
import { startHttpPort } from "../http/http-port.ts";
import type { TlsFiles } from "../http/tls-certificate.ts";
import { loggedRouter } from "../services/call-events.ts";
import { rpcRoutes } from "../services/rpc-routes.ts";
import { tracedRouter } from "../services/served-call-spans.ts";
import type { Log } from "../telemetry/log.ts";
import type { Traced } from "../telemetry/spans.ts";
import type { AdminApi } from "./admin-service/admin-api.ts";
import type { ClusterApi } from "./cluster-api.ts";
import type { SignIn } from "./oidc/sign-in.ts";
import { ownUrl } from "./own-url.ts";

// An agent holds one connection per controller, and there may be a thousand agents.
// A stop ends every stream, so a client still connected two seconds later is not reading.
const serverLimits = { connectionsMax: 10_000, connectionsPerAddressMax: 5_000, drainTimeoutMs: 2_000 };

export interface ControlPlaneServerOptions {
  /** 0 picks a free port. */
  readonly port: number;
  /** The address to listen on. Default: all addresses of the machine. */
  readonly host?: string;
  readonly tls?: TlsFiles;
  readonly limits?: Partial<HttpLimits>;
  /** The setting that the port comes from, for errors. */
  readonly setting?: string;
  /** Shown in the body of the readiness endpoint. */
  readonly checks?: ReadonlyMap<string, HealthCheck>;
  /** The dashboard, which needs the admin API. */
  readonly dashboard?: PageFiles | undefined;
}

export interface ControlPlaneServerDeps extends Traced {
  readonly clock: Clock;
  readonly log: Log;
  readTextFile(path: string, signal: AbortSignal): Promise<string>;
}

export interface RunningControlPlane {
  readonly port: number;
  /** The URL for agents on this machine. */
  readonly url: string;
  /** Undefined if there is none. */
  readonly dashboardUrl: string | undefined;
  /** Rejects when the port fails before it was closed. */
  readonly failed: Promise<never>;
  /** Ends the streams with `unavailable`, lets calls finish, then cuts the rest; cuts at once when in a hurry. */
  close(hurry?: AbortSignal): Promise<void>;
}

/** The APIs to serve: the agents', and the admin API where there is one. */
export interface ServedApis extends ClusterApi {
  readonly adminApi?: AdminApi | undefined;
  /** Signs browsers in with a provider; only with the dashboard. */
  readonly signIn?: SignIn | undefined;
}

export interface ControlPlaneServer {
  start(signal: AbortSignal): Promise<RunningControlPlane>;
}

export function createControlPlaneServer(
  { routes, streams, adminApi, signIn }: ServedApis,
  options: ControlPlaneServerOptions,
  deps: ControlPlaneServerDeps,
): ControlPlaneServer {
  return {
    async start(signal) {
      const health: Health = createHealth(options.checks ?? new Map(), deps);
      const rpcs = rpcRoutes((router) => {
        // Every caller that gets here has presented a valid token.
        const observed = loggedRouter(
          tracedRouter(router, deps.spans, () => true),
          deps,
        );
        routes(observed);
        adminApi?.routes(observed);
      });
      const paths = routeByPath(new Map([...rpcs, ...health.routes()]));
      const { port, host, tls, limits, setting = "port", dashboard } = options;
      const handler =
        dashboard && adminApi ? serveDashboard(dashboard, signIn?.routes() ?? new Map(), paths) : paths;
      const portOptions = { port, host, tls, setting, limits: { ...serverLimits, ...limits } };
      const http = await startHttpPort(handler, portOptions, deps, signal);
      health.markStarted();
      const url = ownUrl({ scheme: tls ? "https" : "http", host, port: http.port });
      return {
        port: http.port,
        url,
        dashboardUrl: handler === paths ? undefined : `${url}${dashboardPath}`,
        failed: http.failed,
        async close(hurry = new AbortController().signal) {
          health.markShuttingDown();
          streams.close();
          adminApi?.close();
          signIn?.close();
          await http.stop(hurry);
        },
      };
    },
  };
}
