// Serves the embedded API server over HTTP/1.1, for kubectl and other processes. Only this file deals with sockets,
// headers and JSON text.

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { ApiServer } from "./api-server.ts";
import type { ApiResponse, ServerRequest, StreamResponse, WholeResponse } from "./request.ts";
import type { User } from "./resource.ts";
import { badRequest, StatusError, statusBody } from "./status-error.ts";

export interface HttpServerOptions {
  readonly host?: string;
  /** Default: a free port. */
  readonly port?: number;
  /** The user of requests without a token. Absent: they are rejected with 401. */
  readonly anonymous?: User;
  /** Default 3 MiB, as in the real server. */
  readonly bodyBytesMax?: number;
}

export interface HttpServerHandle {
  /** `http://127.0.0.1:6443` */
  readonly url: string;
  /** Ends all watches and connections, and resolves when none is left. */
  stop(): Promise<void>;
}

const bodyBytesDefault = 3 * 1024 * 1024;
const methods: readonly string[] = ["GET", "POST", "PUT", "PATCH", "DELETE"];

export async function startHttpServer(
  server: ApiServer,
  options: HttpServerOptions = {},
): Promise<HttpServerHandle> {
  const { host = "127.0.0.1", port = 0 } = options;
  const listener = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    serve(server, options, incoming, outgoing).catch((error: unknown) => fail(outgoing, error));
  };
  const http = createServer(listener);
  await new Promise<void>((resolve, reject) => {
    http.once("error", reject);
    http.listen(port, host, resolve);
  });
  const address = http.address() as AddressInfo;
  return {
    url: `http://${host}:${address.port}`,
    stop: () =>
      new Promise((resolve) => {
        http.close(() => resolve());
        server.faults.closeWatches();
        http.closeAllConnections();
      }),
  };
}

async function serve(
  server: ApiServer,
  options: HttpServerOptions,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<void> {
  const asked = await parseRequest(server, options, incoming);
  if (asked.kind === "refused") {
    sendWhole(outgoing, asked.response);
    return;
  }
  const outcome = server.faults.outcomeOf(asked.request);
  if (outcome === "hang") return;
  const response: ApiResponse = outcome ?? server.handle(asked.request);
  if (response.kind === "whole") sendWhole(outgoing, response);
  else await sendStream(outgoing, response);
}

type Parsed =
  | { readonly kind: "request"; readonly request: ServerRequest }
  | { readonly kind: "refused"; readonly response: WholeResponse };

async function parseRequest(
  server: ApiServer,
  options: HttpServerOptions,
  incoming: IncomingMessage,
): Promise<Parsed> {
  const user = authenticate(server, options, incoming.headers.authorization);
  if (user === undefined) return refused(new StatusError(401, "Unauthorized", "Unauthorized"));
  const method = methods.find((known) => known === incoming.method) as ServerRequest["method"] | undefined;
  if (method === undefined) return refused(badRequest("unsupported method"));
  const [path = "/", search = ""] = (incoming.url ?? "/").split(/\?(.*)/s);
  const contentType = incoming.headers["content-type"];
  const body = await readBody(incoming, contentType ?? "", options.bodyBytesMax ?? bodyBytesDefault);
  if (body.kind === "refused") return refused(body.error);
  const { accept } = incoming.headers;
  const userAgent = incoming.headers["user-agent"];
  return {
    kind: "request",
    request: {
      method,
      path: path.replace(/(?<=.)\/$/, ""),
      query: Object.fromEntries(new URLSearchParams(search)),
      user,
      ...(contentType === undefined ? {} : { contentType }),
      ...(accept === undefined ? {} : { accept }),
      ...(userAgent === undefined ? {} : { userAgent }),
      ...(body.value === undefined ? {} : { body: body.value }),
    },
  };
}

function refused(error: StatusError): Parsed {
  return { kind: "refused", response: { kind: "whole", status: error.status.code, body: statusBody(error) } };
}

function authenticate(
  server: ApiServer,
  { anonymous }: HttpServerOptions,
  header: string | undefined,
): User | undefined {
  if (header === undefined) return anonymous;
  const token = /^Bearer (.+)$/i.exec(header)?.[1];
  if (token === undefined) return undefined;
  const verdict = server.tokens.review(token, []);
  return verdict.kind === "authenticated" ? verdict.user : undefined;
}

function sendWhole(outgoing: ServerResponse, response: WholeResponse): void {
  const isText = typeof response.body === "string";
  const text = isText ? response.body : `${JSON.stringify(response.body)}\n`;
  outgoing.statusCode = response.status;
  outgoing.setHeader(
    "content-type",
    response.contentType ?? (isText ? "text/plain; charset=utf-8" : "application/json"),
  );
  outgoing.setHeader("content-length", Buffer.byteLength(text));
  if (response.retryAfterSeconds !== undefined)
    outgoing.setHeader("retry-after", String(response.retryAfterSeconds));
  if (response.warnings !== undefined) {
    outgoing.setHeader(
      "warning",
      response.warnings.map((warning) => `299 - ${JSON.stringify(warning)}`),
    );
  }
  outgoing.end(text);
}

/** Sends one event per line, as fast as the client reads them. */
async function sendStream(outgoing: ServerResponse, response: StreamResponse): Promise<void> {
  outgoing.once("close", () => response.close());
  const { isText } = response;
  outgoing.writeHead(200, { "content-type": isText ? "text/plain" : "application/json" });
  outgoing.flushHeaders();
  for await (const event of response.values) {
    if (outgoing.destroyed) break;
    if (!outgoing.write(isText ? String(event) : `${JSON.stringify(event)}\n`)) await drained(outgoing);
  }
  outgoing.end();
}

function drained(outgoing: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      outgoing.off("drain", done).off("close", done);
      resolve();
    };
    outgoing.once("drain", done).once("close", done);
  });
}

// For bugs in the server itself. The client gets the message, or loses the connection if the response has started.
function fail(outgoing: ServerResponse, error: unknown): void {
  const why = error instanceof Error ? (error.stack ?? error.message) : String(error);
  if (outgoing.headersSent) outgoing.destroy();
  else {
    const failure = new StatusError(500, "InternalError", `Internal error occurred: ${why}`);
    sendWhole(outgoing, { kind: "whole", status: 500, body: statusBody(failure) });
  }
}

/** A request's body, read up to a limit and parsed. */
type Body =
  | { readonly kind: "read"; readonly value: unknown }
  | { readonly kind: "refused"; readonly error: StatusError };

async function readBody(incoming: IncomingMessage, contentType: string, bytesMax: number): Promise<Body> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of incoming as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (bytes > bytesMax) {
      const message = `Request entity too large: limit is ${bytesMax}`;
      return { kind: "refused", error: new StatusError(413, "RequestEntityTooLarge", message) };
    }
    parts.push(part);
  }
  if (bytes > 0 && !isUnderstood(contentType)) {
    const message =
      "the body of the request was in an unknown format - accepted media types include: application/json";
    return { kind: "refused", error: new StatusError(415, "UnsupportedMediaType", message) };
  }
  const text = Buffer.concat(parts).toString();
  return text === "" ? { kind: "read", value: undefined } : parse(text, contentType);
}

// Some commands of recent kubectl send protobuf (create namespace, auth can-i). No response makes them fall back: they
// handle a 415 only for CBOR, and do not check discovery.
function isUnderstood(contentType: string): boolean {
  return !/protobuf|cbor/.test(contentType);
}

// The content type of apply patches is YAML, but clients send JSON, and this server requires it.
function parse(text: string, contentType: string): Body {
  try {
    return { kind: "read", value: JSON.parse(text) };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    const subject = contentType.includes("yaml")
      ? "error decoding YAML: only JSON is understood"
      : "the object provided is unrecognized: couldn't get version/kind; json parse error";
    return { kind: "refused", error: badRequest(`${subject}: ${why}`) };
  }
}
