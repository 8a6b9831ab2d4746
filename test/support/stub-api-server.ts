// An HTTP server whose every answer is written by the test, byte by byte where it must be.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTlsServer, type ServerOptions } from "node:https";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";
import { createSystemClock } from "../../src/concurrency/clock.ts";
import { createKubeApi } from "../../src/kube/client.ts";
import { fixedCredential, type KubeEndpoint } from "../../src/kube/credentials.ts";
import { createHttpTransport, type HttpTransportOptions } from "../../src/kube/http-transport.ts";
import { eventually } from "./eventually.ts";

export type StubHandler = (
  request: IncomingMessage,
  response: ServerResponse,
  body: string,
) => void | Promise<void>;

export interface StubApiServer {
  readonly url: string;
  /** Every request line that arrived, as it was on the wire. */
  readonly requests: { readonly method: string; readonly url: string; readonly authorization: string }[];
  /** Connections that were ever opened. */
  readonly opened: () => number;
  readonly connectionCount: () => Promise<number>;
}

export async function startStubApiServer(
  t: TestContext,
  handler: StubHandler,
  tls?: ServerOptions,
): Promise<StubApiServer> {
  const requests: StubApiServer["requests"] = [];
  let opened = 0;
  const listener = async (request: IncomingMessage, response: ServerResponse) => {
    const { method = "", url = "", headers } = request;
    requests.push({ method, url, authorization: headers.authorization ?? "" });
    let body = "";
    for await (const chunk of request) body += chunk;
    await handler(request, response, body);
  };
  const server = tls === undefined ? createServer(listener) : createTlsServer(tls, listener);
  server.on("connection", () => {
    opened += 1;
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `${tls === undefined ? "http" : "https"}://127.0.0.1:${port}`,
    requests,
    opened: () => opened,
    connectionCount: () =>
      new Promise((resolve, reject) =>
        server.getConnections((error, count) => (error === null ? resolve(count) : reject(error))),
      ),
  };
}

type ClientOptions = Partial<Omit<HttpTransportOptions, "endpoint">> & {
  readonly endpoint?: Partial<KubeEndpoint>;
};

/** A client of the server, closed with the test; and then no connection may be left. */
export function connectTo(t: TestContext, server: StubApiServer, options: ClientOptions = {}) {
  const endpoint = { server: server.url, credentials: fixedCredential({}), ...options.endpoint };
  const transport = createHttpTransport(
    { connections: 4, ...options, endpoint },
    { clock: createSystemClock() },
  );
  t.after(async () => {
    await transport.close();
    await eventually("every connection is closed", async () => {
      const count = await server.connectionCount();
      if (count !== 0) throw new Error(`${count} connections`);
    });
  });
  return { transport, api: createKubeApi(transport) };
}

export function answerJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}

export function status(code: number, reason: string, details: Readonly<Record<string, unknown>> = {}) {
  return { kind: "Status", apiVersion: "v1", status: "Failure", code, reason, message: reason, details };
}
