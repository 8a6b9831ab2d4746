// Adds the timeouts to HTTP/2 connections that node:http has for HTTP/1.1 and node:http2 lacks: idle connections get a
// GOAWAY and are closed, even if the client does not close them; requests must arrive in time, and responses must be
// read in time. On a stop each connection gets a GOAWAY and ends with its last stream.
import type { ServerHttp2Session, ServerHttp2Stream } from "node:http2";
import { constants } from "node:http2";
import type { Clock, Timer } from "../concurrency/clock.ts";
import type { HttpAdmission } from "./http-admission.ts";
import type { HttpLimits } from "./http-limits.ts";
import { limitStalls, onceEnded, type UnreadResponses } from "./unread-responses.ts";

export type Http2SessionLimits = Pick<HttpLimits, "idleTimeoutMs" | "requestTimeoutMs" | "responseTimeoutMs">;

export interface Http2SessionsDeps {
  readonly clock: Clock;
  readonly admission: HttpAdmission;
  readonly unread: UnreadResponses;
}

/** From the GOAWAY to the end of an idle connection. */
const goawayMs = 5_000;

export class Http2Sessions {
  private readonly limits: Http2SessionLimits;
  private readonly deps: Http2SessionsDeps;
  private readonly sessions = new Set<ServerHttp2Session>();
  private closing = false;

  constructor(limits: Http2SessionLimits, deps: Http2SessionsDeps) {
    this.limits = limits;
    this.deps = deps;
  }

  add(session: ServerHttp2Session): void {
    this.sessions.add(session);
    const open = new Set<ServerHttp2Stream>();
    const { clock, admission } = this.deps;
    // Read now, because Node detaches the socket from a closed session.
    const { remoteAddress, remotePort } = session.socket;
    const leave = () => {
      session.close();
      idle = clock.setTimer(goawayMs, () => admission.hangUp({ remoteAddress, remotePort }));
    };
    const waitForStreams = () => clock.setTimer(this.limits.idleTimeoutMs, leave);
    let idle: Timer = waitForStreams();
    // Before the handler, which may respond immediately.
    session.prependListener("stream", (stream) => {
      idle.cancel();
      open.add(stream);
      this.limitRequest(stream);
      this.limitResponse(session, stream);
      stream.once("close", () => {
        open.delete(stream);
        if (open.size === 0 && !session.destroyed) {
          idle.cancel();
          idle = waitForStreams();
        }
      });
    });
    session.once("close", () => {
      idle.cancel();
      this.sessions.delete(session);
    });
    if (this.closing) session.close();
  }

  /** Lets open streams end and accepts no new ones. */
  closeAll(): void {
    this.closing = true;
    for (const session of this.sessions) session.close();
  }

  private limitRequest(stream: ServerHttp2Stream): void {
    // Without a body the request is already complete, and there is no limit on the response.
    if (stream.endAfterHeaders) return;
    const timer = this.deps.clock.setTimer(this.limits.requestTimeoutMs, () => {
      stream.close(constants.NGHTTP2_CANCEL);
    });
    stream.once("end", () => timer.cancel());
    stream.once("close", () => timer.cancel());
  }

  /** A client can keep its flow-control window closed, which would hold the response, the stream and the connection forever. */
  private limitResponse(session: ServerHttp2Session, stream: ServerHttp2Stream): void {
    const { clock, unread } = this.deps;
    const { responseTimeoutMs } = this.limits;
    limitStalls(stream, () =>
      clock.setTimer(responseTimeoutMs, () => stream.close(constants.NGHTTP2_CANCEL)),
    );
    onceEnded(stream, () => {
      if (stream.destroyed) return;
      const cut = () => session.destroy();
      const timer = clock.setTimer(responseTimeoutMs, cut);
      stream.once("close", () => timer.cancel());
      unread.add(stream, cut);
    });
  }
}
