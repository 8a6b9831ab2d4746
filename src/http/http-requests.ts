// The requests in flight on a port, and the HTTP/1.1 connections they come on. A handler
// that fails answers 500 and is logged; it never takes the process with it.
//
// What an HTTP/1.1 connection holds is bounded: so many requests, and a time for the
// client to take each answer. Node has neither limit, and a client that only ever asks
// would fill the memory with answers.
import { ServerResponse } from "node:http";
import { constants } from "node:http2";
import type { Socket } from "node:net";
import type { Clock, Timer } from "../concurrency/clock.ts";
import type { Log } from "../telemetry/log.ts";
import type { HttpAdmission } from "./http-admission.ts";
import { type HttpHandler, type HttpRequest, type HttpResponse, jsonAnswer, send } from "./http-handler.ts";
import type { HttpLimits } from "./http-limits.ts";
import { limitStalls, onceEnded, type UnreadResponses } from "./unread-responses.ts";

export interface HttpRequestsDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly admission: HttpAdmission;
  readonly unread: UnreadResponses;
}

interface Http1Connection {
  /** In the order of the requests, which is also that of the answers. */
  readonly inFlight: Set<ServerResponse>;
  /** Runs while the oldest answer is complete and not yet taken. */
  answerTimer: Timer | undefined;
}

export class HttpRequests {
  private readonly handler: HttpHandler;
  private readonly limits: Pick<HttpLimits, "answerTimeoutMs" | "pipelinedMax">;
  private readonly deps: HttpRequestsDeps;
  private readonly http1 = new Map<Socket, Http1Connection>();
  private closing = false;

  constructor(
    handler: HttpHandler,
    limits: Pick<HttpLimits, "answerTimeoutMs" | "pipelinedMax">,
    deps: HttpRequestsDeps,
  ) {
    this.handler = handler;
    this.limits = limits;
    this.deps = deps;
  }

  readonly receive = (request: HttpRequest, response: HttpResponse): void => {
    if (response instanceof ServerResponse && !this.beginHttp1(request.socket, response)) return;
    // Node reports a write to a connection that is gone as an `error` event, which
    // without a listener would end the process.
    response.on("error", (error) => this.deps.log.debug("response failed", { error }));
    response.once("close", this.deps.admission.begin(request.socket));
    void this.handle(request, response);
  };

  /** Begins to track an HTTP/1.1 connection, before its first request. */
  trackHttp1Connection(socket: Socket): void {
    const connection: Http1Connection = { inFlight: new Set(), answerTimer: undefined };
    this.http1.set(socket, connection);
    socket.once("close", () => {
      connection.answerTimer?.cancel();
      this.http1.delete(socket);
    });
  }

  /**
   * Ends each HTTP/1.1 connection with its last response, and says so in the headers
   * where they are not yet sent. Node itself would keep them open for the idle time, and
   * would wait for the rest of a request that may never come.
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
    // Node goes on with the requests that came in one piece after the socket was destroyed.
    if (!connection || socket.destroyed) return false;
    const { inFlight } = connection;
    if (inFlight.size >= this.limits.pipelinedMax) {
      socket.destroy();
      return false;
    }
    if (this.closing) response.shouldKeepAlive = false;
    inFlight.add(response);
    const cut = () => socket.destroy();
    limitStalls(response, () => this.deps.clock.setTimer(this.limits.answerTimeoutMs, cut));
    onceEnded(response, () => {
      this.limitAnswer(socket, connection);
      this.deps.unread.add(response, cut);
    });
    response.once("close", () => {
      inFlight.delete(response);
      connection.answerTimer?.cancel();
      connection.answerTimer = undefined;
      this.limitAnswer(socket, connection);
      if (this.closing && inFlight.size === 0) socket.destroySoon();
    });
    return true;
  }

  private limitAnswer(socket: Socket, connection: Http1Connection): void {
    const [oldest] = connection.inFlight;
    if (connection.answerTimer || !oldest?.writableEnded || socket.destroyed) return;
    const { answerTimeoutMs } = this.limits;
    connection.answerTimer = this.deps.clock.setTimer(answerTimeoutMs, () => socket.destroy());
  }

  private async handle(request: HttpRequest, response: HttpResponse): Promise<void> {
    try {
      await this.handler(request, response);
    } catch (error) {
      const path = request.url?.split("?", 1)[0];
      this.deps.log.error("request handler failed", { method: request.method, path, error });
      if (!response.headersSent) send(request, response, jsonAnswer(500, { error: "internal error" }));
      else if (response instanceof ServerResponse) response.destroy();
      else response.stream.close(constants.NGHTTP2_INTERNAL_ERROR);
    }
  }
}
