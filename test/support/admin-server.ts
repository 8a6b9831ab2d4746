// A control plane on a loopback port with everything in memory, for tests of the admin
// API and of the commands that call it.
import { type Client, createClient, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { readTextFile } from "../../src/cli/process/text-file.ts";
import { type Clock, createSystemClock } from "../../src/concurrency/clock.ts";
import { Secret } from "../../src/config/secret.ts";
import { ClusterService } from "../../src/gen/ctrl/v1/cluster_service_pb.ts";
import { AdminService } from "../../src/gen/krane/admin/v1/admin_pb.ts";
import { createControlPlaneServer } from "../../src/server/control-plane-server.ts";
import type { MemoryStore } from "../../src/server/memory-store.ts";
import { createQuietLog } from "./quiet-log.ts";
import { createTestPlane, type StoreAdmin, type TestPlane } from "./store-admin.ts";

export interface AdminServerOptions {
  /** All that it knows. Default: `local.dev`. */
  readonly regions?: readonly string[];
  readonly clock?: Clock;
  /** Of the API of the agents. */
  readonly interceptors?: readonly Interceptor[];
}

export interface AdminServer {
  readonly url: string;
  /** The first one. */
  readonly region: string;
  /** `readWrite` has the name `ann`, `readOnly` has `bob`, `logs` has `lea`; `agent` is for the API of the agents. */
  readonly tokens: typeof adminTokens;
  readonly store: MemoryStore;
  /** The same store, past the API and its checks. */
  readonly admin: StoreAdmin;
  readonly plane: TestPlane;
  /** A client of the admin API; without a token, the one that may write. */
  client(token?: string): Client<typeof AdminService>;
  /** A client of the API of the agents, that speaks for a region. */
  agentClient(region?: string): Client<typeof ClusterService>;
  stop(): Promise<void>;
}

const adminTokens = {
  readWrite: "ann-may-read-and-write",
  readOnly: "bob-may-only-read-things",
  logs: "lea-may-read-things-and-logs",
  agent: "token-of-the-agents",
} as const;

export async function startAdminServer(options: AdminServerOptions = {}): Promise<AdminServer> {
  const { regions = ["local.dev"], clock = createSystemClock(), interceptors = [] } = options;
  const deps = { clock, log: createQuietLog(), readTextFile };
  const { readWrite, readOnly, logs } = adminTokens;
  const lines = `ann read-write ${readWrite}\nbob read-only ${readOnly}\nlea logs ${logs}`;
  const plane = createTestPlane(
    { tokens: [new Secret(adminTokens.agent)], adminTokens: new Secret(lines), interceptors },
    deps,
  );
  for (const region of regions) await plane.admin.registerRegion(region);
  const server = createControlPlaneServer(plane, { port: 0, host: "127.0.0.1" }, deps);
  const running = await server.start(new AbortController().signal);
  const url = `http://127.0.0.1:${running.port}`;
  const [region = ""] = regions;
  const transport = (headers: Readonly<Record<string, string>>) =>
    createConnectTransport({
      baseUrl: url,
      httpVersion: "1.1",
      interceptors: [
        (next) => (request) => {
          for (const [name, value] of Object.entries(headers)) request.header.set(name, value);
          return next(request);
        },
      ],
    });
  return {
    url,
    region,
    tokens: adminTokens,
    store: plane.store,
    admin: plane.admin,
    plane,
    client: (token = adminTokens.readWrite) =>
      createClient(AdminService, transport({ authorization: `Bearer ${token}` })),
    agentClient: (spokenFor = region) =>
      createClient(
        ClusterService,
        transport({ authorization: `Bearer ${adminTokens.agent}`, "x-krane-region": spokenFor }),
      ),
    stop: () => running.close(),
  };
}
