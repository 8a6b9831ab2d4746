// The requests in flight on a port, and the HTTP/1.1 connections they come on. A handler
// that fails answers 500 and is logged; it never takes the process with it.
import { ServerResponse } from "node:http";
import { constants } from "node:http2";
import type { Socket } from "node:net";
import type { Log } from "../telemetry/log.ts";
import { type HttpHandler, type HttpRequest, type HttpResponse, jsonAnswer, send } from "./http-handler.ts";

export class HttpRequests {
  private readonly handler: HttpHandler;
  private readonly log: Log;
  private readonly http1 = new Map<Socket, Set<ServerResponse>>();
  private closing = false;

  constructor(handler: HttpHandler, deps: { readonly log: Log }) {
    this.handler = handler;
    this.log = deps.log;
  }

  readonly receive = (request: HttpRequest, response: HttpResponse): void => {
    if (response instanceof ServerResponse) this.trackHttp1(response);
    // Node reports a write to a connection that is gone as an `error` event, which
    // without a listener would end the process.
    response.on("error", (error) => this.log.debug("response failed", { error }));
    void this.handle(request, response);
  };

  /** Begins to track an HTTP/1.1 connection, before its first request. */
  trackHttp1Connection(socket: Socket): void {
    this.http1.set(socket, new Set());
    socket.once("close", () => this.http1.delete(socket));
  }

  /**
   * Ends each HTTP/1.1 connection with its last response, and says so in the headers
   * where they are not yet sent. Node itself would keep them open for the idle time, and
   * would wait for the rest of a request that may never come.
   */
  closeHttp1Connections(): void {
    this.closing = true;
    for (const [socket, inFlight] of this.http1) {
      if (inFlight.size === 0) socket.destroySoon();
      for (const response of inFlight) response.shouldKeepAlive = false;
    }
  }

  private trackHttp1(response: ServerResponse): void {
    const { socket } = response;
    const inFlight = socket && this.http1.get(socket);
    if (!inFlight) return;
    if (this.closing) response.shouldKeepAlive = false;
    inFlight.add(response);
    response.once("close", () => {
      inFlight.delete(response);
      if (this.closing && inFlight.size === 0) socket.destroySoon();
    });
  }

  private async handle(request: HttpRequest, response: HttpResponse): Promise<void> {
    try {
      await this.handler(request, response);
    } catch (error) {
      const path = request.url?.split("?", 1)[0];
      this.log.error("request handler failed", { method: request.method, path, error });
      if (!response.headersSent) send(request, response, jsonAnswer(500, { error: "internal error" }));
      else if (response instanceof ServerResponse) response.destroy();
      else response.stream.close(constants.NGHTTP2_INTERNAL_ERROR);
    }
  }
}
