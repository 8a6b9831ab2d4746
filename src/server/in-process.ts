// A complete control plane in memory, with its admin API and fault injection, for tests,
// simulation and `krane dev`. `createTransport` reaches it without a socket: calls are
// encoded and decoded as on the wire, with the same interceptors and errors.
import { createRouterTransport, type Interceptor, type Transport } from "@connectrpc/connect";
import type { Secret } from "../config/secret.ts";
import { createSecretSource } from "../config/secret-source.ts";
import { createBearerAuth } from "../services/bearer-auth.ts";
import { type AdminApi, createAdminApi } from "./admin-service/admin-api.ts";
import { type Admin, createAdminClient } from "./admin-service/admin-client.ts";
import type { StoreIncarnation } from "./client-position.ts";
import { type ClusterApi, type ClusterApiDeps, createClusterApi } from "./cluster-api.ts";
import { createFaults, type Faults } from "./faults.ts";
import { LogBroker } from "./logs/log-broker.ts";
import { MemoryStore } from "./memory-store.ts";
import { RpcFaults } from "./rpc-faults.ts";

export interface InMemoryControlPlaneOptions {
  readonly tokens: readonly Secret[];
  /** Lines of name, role and token. Without them the admin API is not served. */
  readonly adminTokens?: Secret;
  /** Generates unguessable text. Without it, browsers cannot sign in. */
  readonly createToken?: () => string;
  /** Sees every authenticated call before faults are injected. */
  readonly interceptors?: readonly Interceptor[];
  /** Of its history; by default a new one. "unnamed" behaves as an older control plane. */
  readonly incarnation?: StoreIncarnation | "unnamed";
}

export interface InMemoryControlPlane extends ClusterApi {
  readonly store: MemoryStore;
  /** A client of the admin API; it needs no token. */
  readonly admin: Admin;
  readonly adminApi: AdminApi | undefined;
  readonly faults: Faults;
  /** A new client transport; the interceptors are the client's. */
  createTransport(interceptors?: readonly Interceptor[]): Transport;
}

export function createInMemoryControlPlane(
  options: InMemoryControlPlaneOptions,
  deps: ClusterApiDeps,
): InMemoryControlPlane {
  const startedMs = Math.trunc(deps.clock.wallMs());
  const first = { ordinal: BigInt(startedMs), id: `memory${startedMs}-1`, parent: "", isReplica: false };
  const { incarnation = first } = options;
  const store = new MemoryStore(incarnation === "unnamed" ? undefined : incarnation);
  const rpcFaults = new RpcFaults();
  const interceptors = [...(options.interceptors ?? []), rpcFaults.interceptor];
  const logs = new LogBroker(deps);
  const { routes, streams } = createClusterApi(
    { store, auth: createBearerAuth(options.tokens), interceptors, logs },
    deps,
  );
  const { adminTokens: secret, createToken } = options;
  const sessions = createToken && { createToken, servesTls: false };
  const adminApi =
    secret &&
    createAdminApi(
      { store, tokens: createSecretSource({ kind: "inline", secret }, noFiles), sessions, logs },
      deps,
    );
  return {
    routes,
    streams,
    store,
    adminApi,
    admin: createAdminClient(store, "admin", deps),
    faults: createFaults({ store, streams, rpcs: rpcFaults }, deps),
    createTransport: (clientInterceptors = []) =>
      createRouterTransport(
        (router) => {
          routes(router);
          adminApi?.routes(router);
        },
        { transport: { interceptors: [...clientInterceptors] } },
      ),
  };
}

/** Tokens passed as literals need no file. */
const noFiles = { readTextFile: () => Promise.reject(new Error("no file is read here")), nowMs: () => 0 };
