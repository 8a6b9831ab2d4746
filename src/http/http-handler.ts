// One type of request handler for HTTP/1.1 and HTTP/2, and the few answers that
// every port gives. node:http2's compatibility API makes both versions look alike.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";

export type HttpRequest = IncomingMessage | Http2ServerRequest;
export type HttpResponse = ServerResponse | Http2ServerResponse;
export type HttpHandler = (request: HttpRequest, response: HttpResponse) => void | Promise<void>;

export interface HttpAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

/** Serves what can be fetched but not changed: GET and HEAD get the answer, anything else 405. */
export function serveReads(answer: () => HttpAnswer | Promise<HttpAnswer>): HttpHandler {
  return async (request, response) => {
    if (request.method !== "GET" && request.method !== "HEAD") {
      send(request, response, jsonAnswer(405, { error: "method not allowed" }), { allow: "GET, HEAD" });
      return;
    }
    send(request, response, await answer());
  };
}

/** The handler whose path is exactly that of the request; 404 when there is none. */
export function routeByPath(routes: ReadonlyMap<string, HttpHandler>): HttpHandler {
  return (request, response) => {
    const path = (request.url ?? "").split("?", 1)[0] ?? "";
    const handler = routes.get(path);
    if (handler) return handler(request, response);
    return send(request, response, jsonAnswer(404, { error: "not found" }));
  };
}

export function jsonAnswer(status: number, body: unknown): HttpAnswer {
  return { status, contentType: "application/json", body: `${JSON.stringify(body)}\n` };
}

export function send(
  request: HttpRequest,
  response: HttpResponse,
  answer: HttpAnswer,
  headers: Readonly<Record<string, string>> = {},
): void {
  response.statusCode = answer.status;
  response.setHeader("content-type", answer.contentType);
  // Set by hand, so that HEAD has the same headers as GET.
  response.setHeader("content-length", Buffer.byteLength(answer.body));
  response.setHeader("cache-control", "no-store");
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  // A client that went away meanwhile gets nothing, which is no error here.
  if (request.method === "HEAD") response.end();
  else response.end(answer.body);
}
