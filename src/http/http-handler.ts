// Request handlers that work for both HTTP/1.1 and HTTP/2, through node:http2's compatibility API, and the responses
// that every port sends.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";

export type HttpRequest = IncomingMessage | Http2ServerRequest;
export type HttpResponse = ServerResponse | Http2ServerResponse;
export type HttpHandler = (request: HttpRequest, response: HttpResponse) => void | Promise<void>;

/** A whole response, ready to send. */
export interface TextResponse {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

/** Serves a read-only resource: GET and HEAD get the content, other methods get a 405. */
export function serveReads(read: () => TextResponse | Promise<TextResponse>): HttpHandler {
  return async (request, response) => {
    if (request.method !== "GET" && request.method !== "HEAD") {
      send(request, response, jsonResponse(405, { error: "method not allowed" }), { allow: "GET, HEAD" });
      return;
    }
    send(request, response, await read());
  };
}

/** Dispatches to the handler of exactly the request's path; 404 for other paths. */
export function routeByPath(routes: ReadonlyMap<string, HttpHandler>): HttpHandler {
  return (request, response) => {
    const path = (request.url ?? "").split("?", 1)[0] ?? "";
    const handler = routes.get(path);
    if (handler) return handler(request, response);
    return send(request, response, jsonResponse(404, { error: "not found" }));
  };
}

export function jsonResponse(status: number, body: unknown): TextResponse {
  return { status, contentType: "application/json", body: `${JSON.stringify(body)}\n` };
}

export function send(
  request: HttpRequest,
  response: HttpResponse,
  { status, contentType, body }: TextResponse,
  headers: Readonly<Record<string, string>> = {},
): void {
  response.statusCode = status;
  response.setHeader("content-type", contentType);
  // Set explicitly, so that HEAD has the same headers as GET.
  response.setHeader("content-length", Buffer.byteLength(body));
  response.setHeader("cache-control", "no-store");
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  // Does not fail when the client is already gone.
  if (request.method === "HEAD") response.end();
  else response.end(body);
}
