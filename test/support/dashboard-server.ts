// A control plane with the dashboard on a loopback port, everything in memory, for tests of what a browser may do. The lists of tokens
// may be rewritten while it runs.
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { readTextFile } from "../../src/cli/process/text-file.ts";
import type { Clock } from "../../src/concurrency/clock.ts";
import { Secret } from "../../src/config/secret.ts";
import { unpackFiles } from "../../src/dashboard/page-files.ts";
import { AdminService } from "../../src/gen/krane/admin/v1/admin_pb.ts";
import { createAdminApi } from "../../src/server/admin-service/admin-api.ts";
import { createAgentAuth } from "../../src/server/agent-auth.ts";
import { createClusterApi } from "../../src/server/cluster-api.ts";
import { createControlPlaneServer } from "../../src/server/control-plane-server.ts";
import { LogBroker } from "../../src/server/logs/log-broker.ts";
import { MemoryStore } from "../../src/server/memory-store.ts";
import type { Log } from "../../src/telemetry/log.ts";
import { bundleDashboard } from "../../tools/bundle-dashboard.ts";

export const browserTokens = {
  ann: "token-of-ann-may-write",
  bob: "token-of-bob-may-read",
  agent: "token-of-the-agents",
} as const;

export interface Reply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** The code of a Connect error; empty for none. */
  readonly code: string;
}

export interface RawRequest {
  readonly method?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

export interface DashboardServer {
  readonly url: string;
  readonly store: MemoryStore;
  /** Between those who read logs and agents. */
  readonly logs: LogBroker;
  readonly lists: { people: string; agents: string };
  /** Sends exactly this. */
  send(request: RawRequest): Promise<Reply>;
  /** A call of the admin API in JSON, as the page would make it. */
  call(method: string, headers?: Readonly<Record<string, string>>, message?: object): Promise<Reply>;
  /** A stream of the admin API in JSON, to its end. */
  stream(method: string, headers: Readonly<Record<string, string>>, message?: object): Promise<string>;
  /** Signs in; resolves with the cookie. */
  signIn(token?: string): Promise<string>;
  stop(): Promise<void>;
}

/** What a browser adds to the requests of the page itself. */
export const ownPage = { "sec-fetch-site": "same-origin" } as const;

export async function startDashboardServer(deps: {
  readonly clock: Clock;
  readonly log: Log;
}): Promise<DashboardServer> {
  const lists = {
    people: `ann read-write ${browserTokens.ann}\nbob read-only ${browserTokens.bob}`,
    agents: `local.dev ${browserTokens.agent}`,
  };
  const source = (list: keyof typeof lists) => ({
    current: async () => new Secret(lists[list]),
    refresh: () => undefined,
  });
  const store = new MemoryStore();
  await store.registerRegion("local.dev");
  const sessions = { createToken: () => randomBytes(24).toString("hex"), servesTls: false };
  const logs = new LogBroker(deps);
  const apis = {
    ...createClusterApi({ store, auth: createAgentAuth(source("agents")), logs }, deps),
    adminApi: createAdminApi(
      { store, tokens: source("people"), agentTokens: source("agents"), sessions, logs },
      deps,
    ),
  };
  const { files } = await bundleDashboard();
  const options = { port: 0, host: "127.0.0.1", dashboard: unpackFiles(files) };
  const running = await createControlPlaneServer(apis, options, { ...deps, readTextFile }).start(
    new AbortController().signal,
  );
  const url = `http://127.0.0.1:${running.port}`;
  const send = async ({ method = "GET", path, headers = {}, body }: RawRequest): Promise<Reply> => {
    const request = httpRequest({
      host: "127.0.0.1",
      port: running.port,
      method,
      path,
      headers,
      agent: false,
    });
    request.end(body);
    const [response] = (await once(request, "response")) as [IncomingMessage];
    const answer = await text(response);
    const code = /"code":\s*"([a-z_]+)"/.exec(answer)?.[1] ?? "";
    return { status: response.statusCode ?? 0, headers: response.headers, body: answer, code };
  };
  const call: DashboardServer["call"] = (method, headers = {}, message = {}) =>
    send({
      method: "POST",
      path: `/${AdminService.typeName}/${method}`,
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify(message),
    });
  return {
    url,
    store,
    logs,
    lists,
    send,
    call,
    async stream(method, headers, message = {}) {
      const body = Buffer.from(JSON.stringify(message));
      const response = await fetch(`${url}/${AdminService.typeName}/${method}`, {
        method: "POST",
        headers: { "content-type": "application/connect+json", ...headers },
        body: Buffer.concat([Buffer.from([0, 0, 0, 0, body.length]), body]),
      });
      return response.text();
    },
    async signIn(token = browserTokens.ann) {
      const { headers, status, body } = await call("CreateSession", {
        authorization: `Bearer ${token}`,
        ...ownPage,
      });
      const [cookie] = headers["set-cookie"] ?? [];
      if (cookie === undefined) throw new Error(`not signed in: ${status} ${body}`);
      return cookie.split(";", 1)[0] ?? "";
    },
    stop: () => running.close(),
  };
}
