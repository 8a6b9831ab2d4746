// A whole control plane in memory, with its admin API and its faults, for tests,
// simulation and `krane dev`. `createTransport` reaches it without a socket: calls are
// encoded and decoded as on the wire, with the same interceptors and errors.
import { createRouterTransport, type Interceptor, type Transport } from "@connectrpc/connect";
import type { Secret } from "../config/secret.ts";
import { createBearerAuth } from "../services/bearer-auth.ts";
import { type Admin, createAdmin } from "./admin.ts";
import { type ClusterApi, type ClusterApiDeps, createClusterApi } from "./cluster-api.ts";
import { createFaults, type Faults } from "./faults.ts";
import { MemoryStore } from "./memory-store.ts";
import { RpcFaults } from "./rpc-faults.ts";

export interface InMemoryControlPlaneOptions {
  readonly tokens: readonly Secret[];
  /** Sees every authenticated call before a fault does. */
  readonly interceptors?: readonly Interceptor[];
}

export interface InMemoryControlPlane extends ClusterApi {
  readonly admin: Admin;
  readonly faults: Faults;
  /** A client side of its own; the interceptors are the client's. */
  createTransport(interceptors?: readonly Interceptor[]): Transport;
}

export function createInMemoryControlPlane(
  options: InMemoryControlPlaneOptions,
  deps: ClusterApiDeps,
): InMemoryControlPlane {
  const store = new MemoryStore();
  const rpcFaults = new RpcFaults();
  const interceptors = [...(options.interceptors ?? []), rpcFaults.interceptor];
  const { routes, streams } = createClusterApi(
    { store, auth: createBearerAuth(options.tokens), interceptors },
    deps,
  );
  return {
    routes,
    streams,
    admin: createAdmin(store, { clock: deps.clock, by: "admin" }),
    faults: createFaults(store, streams, rpcFaults),
    createTransport: (clientInterceptors = []) =>
      createRouterTransport(routes, { transport: { interceptors: [...clientInterceptors] } }),
  };
}
