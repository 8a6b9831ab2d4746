// Tracks the requests in flight on a port and the HTTP/1.1 connections that they come on. When a handler fails, the
// client gets a 500 and the error is logged; it never ends the process.
//
// An HTTP/1.1 connection has a limit on pipelined requests and on the time to read each response. Node has neither, and
// a client that sends requests without reading responses would fill the memory.
import { ServerResponse } from "node:http";
import { constants } from "node:http2";
import type { Socket } from "node:net";
import type { Clock, Timer } from "../concurrency/clock.ts";
import type { Log } from "../telemetry/log.ts";
import type { HttpAdmission } from "./http-admission.ts";
import { type HttpHandler, type HttpRequest, type HttpResponse, jsonResponse, send } from "./http-handler.ts";
import type { HttpLimits } from "./http-limits.ts";
import { limitStalls, onceEnded, type UnreadResponses } from "./unread-responses.ts";

export interface HttpRequestsDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly admission: HttpAdmission;
  readonly unread: UnreadResponses;
}

interface Http1Connection {
  /** In the order of the requests, which is also the order of the responses. */
  readonly inFlight: Set<ServerResponse>;
  /** Runs while the oldest response is complete but not fully read by the client. */
  responseTimer: Timer | undefined;
}

export class HttpRequests {
  private readonly handler: HttpHandler;
  private readonly limits: Pick<HttpLimits, "responseTimeoutMs" | "pipelinedMax">;
  private readonly deps: HttpRequestsDeps;
  private readonly http1 = new Map<Socket, Http1Connection>();
  private closing = false;

  constructor(
    handler: HttpHandler,
    limits: Pick<HttpLimits, "responseTimeoutMs" | "pipelinedMax">,
    deps: HttpRequestsDeps,
  ) {
    this.handler = handler;
    this.limits = limits;
    this.deps = deps;
  }

  readonly receive = (request: HttpRequest, response: HttpResponse): void => {
    if (response instanceof ServerResponse && !this.beginHttp1(request.socket, response)) return;
    // Node reports a write to a closed connection as an `error` event, which would end the process without a listener.
    response.on("error", (error) => this.deps.log.debug("response failed", { error }));
    response.once("close", this.deps.admission.begin(request.socket));
    void this.handle(request, response);
  };

  /** Starts to track an HTTP/1.1 connection. Call it before its first request. */
  trackHttp1Connection(socket: Socket): void {
    const connection: Http1Connection = { inFlight: new Set(), responseTimer: undefined };
    this.http1.set(socket, connection);
    socket.once("close", () => {
      connection.responseTimer?.cancel();
      this.http1.delete(socket);
    });
  }

  /**
   * Closes each HTTP/1.1 connection after its last response, and announces that in headers that are not sent yet. Node
   * itself would keep them open for the idle time, and would wait for the rest of an incomplete request.
   */
  closeHttp1Connections(): void {
    this.closing = true;
    for (const [socket, { inFlight }] of this.http1) {
      if (inFlight.size === 0) socket.destroySoon();
      for (const response of inFlight) response.shouldKeepAlive = false;
    }
  }

  /** False when the connection is no longer served. */
  private beginHttp1(socket: Socket, response: ServerResponse): boolean {
    const connection = this.http1.get(socket);
    // Node still emits pipelined requests of the same chunk after the socket was destroyed.
    if (!connection || socket.destroyed) return false;
    const { inFlight } = connection;
    if (inFlight.size >= this.limits.pipelinedMax) {
      socket.destroy();
      return false;
    }
    if (this.closing) response.shouldKeepAlive = false;
    inFlight.add(response);
    const cut = () => socket.destroy();
    limitStalls(response, () => this.deps.clock.setTimer(this.limits.responseTimeoutMs, cut));
    onceEnded(response, () => {
      this.limitResponse(socket, connection);
      this.deps.unread.add(response, cut);
    });
    response.once("close", () => {
      inFlight.delete(response);
      connection.responseTimer?.cancel();
      connection.responseTimer = undefined;
      this.limitResponse(socket, connection);
      if (this.closing && inFlight.size === 0) socket.destroySoon();
    });
    return true;
  }

  private limitResponse(socket: Socket, connection: Http1Connection): void {
    const [oldest] = connection.inFlight;
    if (connection.responseTimer || !oldest?.writableEnded || socket.destroyed) return;
    const { responseTimeoutMs } = this.limits;
    connection.responseTimer = this.deps.clock.setTimer(responseTimeoutMs, () => socket.destroy());
  }

  private async handle(request: HttpRequest, response: HttpResponse): Promise<void> {
    try {
      await this.handler(request, response);
    } catch (error) {
      const path = request.url?.split("?", 1)[0];
      this.deps.log.error("request handler failed", { method: request.method, path, error });
      if (!response.headersSent) send(request, response, jsonResponse(500, { error: "internal error" }));
      else if (response instanceof ServerResponse) response.destroy();
      else response.stream.close(constants.NGHTTP2_INTERNAL_ERROR);
    }
  }
}
