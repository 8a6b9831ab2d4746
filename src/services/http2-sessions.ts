// HTTP/2 connections with the limits that node:http has for HTTP/1.1 and node:http2
// does not: an idle connection is closed, a request has to arrive in time, its answer has
// to be taken in time, and on a stop each connection is told (GOAWAY) and ends when its
// last stream has ended.
import type { ServerHttp2Session, ServerHttp2Stream } from "node:http2";
import { constants } from "node:http2";
import type { Clock, Timer } from "../concurrency/clock.ts";
import { onceEnded } from "./http-handler.ts";
import type { HttpLimits } from "./http-limits.ts";

export type Http2SessionLimits = Pick<HttpLimits, "idleTimeoutMs" | "requestTimeoutMs" | "answerTimeoutMs">;

export class Http2Sessions {
  private readonly limits: Http2SessionLimits;
  private readonly clock: Clock;
  private readonly sessions = new Set<ServerHttp2Session>();
  private closing = false;

  constructor(limits: Http2SessionLimits, deps: { readonly clock: Clock }) {
    this.limits = limits;
    this.clock = deps.clock;
  }

  add(session: ServerHttp2Session): void {
    this.sessions.add(session);
    const open = new Set<ServerHttp2Stream>();
    const waitForStreams = () => this.clock.setTimer(this.limits.idleTimeoutMs, () => session.close());
    let idle: Timer = waitForStreams();
    // Before the handler, which may answer at once.
    session.prependListener("stream", (stream) => {
      idle.cancel();
      open.add(stream);
      this.limitRequest(stream);
      this.limitAnswer(stream);
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

  /** Lets open streams end, and no new ones begin. */
  closeAll(): void {
    this.closing = true;
    for (const session of this.sessions) session.close();
  }

  private limitRequest(stream: ServerHttp2Stream): void {
    // Without a body the request is here already, and its answer may take its time.
    if (stream.endAfterHeaders) return;
    const timer = this.clock.setTimer(this.limits.requestTimeoutMs, () => {
      stream.close(constants.NGHTTP2_CANCEL);
    });
    stream.once("end", () => timer.cancel());
    stream.once("close", () => timer.cancel());
  }

  /** A client can keep its window shut, and so hold the answer, the stream and the connection for ever. */
  private limitAnswer(stream: ServerHttp2Stream): void {
    onceEnded(stream, () => {
      if (stream.destroyed) return;
      const timer = this.clock.setTimer(this.limits.answerTimeoutMs, () => stream.session?.destroy());
      stream.once("close", () => timer.cancel());
    });
  }
}
