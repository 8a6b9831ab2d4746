// The embedded server over HTTP/1.1, for kubectl and everything else
// that is not in this process. Only this file knows sockets, headers and JSON text.

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { ApiServer } from "./api-server.ts";
import type { ServerAnswer, ServerRequest, StreamAnswer, WholeAnswer } from "./request.ts";
import type { User } from "./resource.ts";
import { badRequest, StatusError, statusBody } from "./status-error.ts";

export interface HttpServerOptions {
  readonly host?: string;
  /** Default: one that is free. */
  readonly port?: number;
  /** For requests without a token. Absent: they are refused with 401. */
  readonly anonymous?: User;
  /** Default 3 MiB, as the real server. */
  readonly bodyBytesMax?: number;
}

export interface HttpServerHandle {
  /** `http://127.0.0.1:6443` */
  readonly url: string;
  /** Ends all watches and connections; resolves when none is left. */
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
    sendWhole(outgoing, asked.answer);
    return;
  }
  const outcome = server.faults.outcomeOf(asked.request);
  if (outcome === "hang") return;
  const answer: ServerAnswer = outcome ?? server.handle(asked.request);
  if (answer.kind === "whole") sendWhole(outgoing, answer);
  else await sendStream(outgoing, answer);
}

type Parsed =
  | { readonly kind: "request"; readonly request: ServerRequest }
  | { readonly kind: "refused"; readonly answer: WholeAnswer };

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
  return { kind: "refused", answer: { kind: "whole", status: error.status.code, body: statusBody(error) } };
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

function sendWhole(outgoing: ServerResponse, answer: WholeAnswer): void {
  const isText = typeof answer.body === "string";
  const text = isText ? answer.body : `${JSON.stringify(answer.body)}\n`;
  outgoing.statusCode = answer.status;
  outgoing.setHeader(
    "content-type",
    answer.contentType ?? (isText ? "text/plain; charset=utf-8" : "application/json"),
  );
  outgoing.setHeader("content-length", Buffer.byteLength(text));
  if (answer.retryAfterSeconds !== undefined)
    outgoing.setHeader("retry-after", String(answer.retryAfterSeconds));
  if (answer.warnings !== undefined) {
    outgoing.setHeader(
      "warning",
      answer.warnings.map((warning) => `299 - ${JSON.stringify(warning)}`),
    );
  }
  outgoing.end(text);
}

/** One event per line, as fast as the reader takes them. */
async function sendStream(outgoing: ServerResponse, answer: StreamAnswer): Promise<void> {
  outgoing.once("close", () => answer.close());
  outgoing.writeHead(200, { "content-type": "application/json" });
  outgoing.flushHeaders();
  for await (const event of answer.values) {
    if (outgoing.destroyed) break;
    if (!outgoing.write(`${JSON.stringify(event)}\n`)) await drained(outgoing);
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

// A bug in the server itself. The client learns what it was, or loses the connection if
// an answer has begun.
function fail(outgoing: ServerResponse, error: unknown): void {
  const why = error instanceof Error ? (error.stack ?? error.message) : String(error);
  if (outgoing.headersSent) outgoing.destroy();
  else {
    const failure = new StatusError(500, "InternalError", `Internal error occurred: ${why}`);
    sendWhole(outgoing, { kind: "whole", status: 500, body: statusBody(failure) });
  }
}

// A request's body, read up to a limit and parsed.

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

// Typed clients of recent kubectl write protobuf (create namespace, auth can-i). No answer
// makes them fall back: of a 415 they learn only for CBOR, and they do not ask discovery.
function isUnderstood(contentType: string): boolean {
  return !/protobuf|cbor/.test(contentType);
}

// Apply patches are YAML by name; clients send the JSON part of it, and so must they here.
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
