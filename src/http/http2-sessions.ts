// HTTP/2 connections with the limits that node:http has for HTTP/1.1 and node:http2
// does not: an idle connection is told (GOAWAY) and closed, also where its client does not
// do its part; a request has to arrive in time, its answer has to be taken in time, and on
// a stop each connection is told and ends when its last stream has ended.
import type { ServerHttp2Session, ServerHttp2Stream } from "node:http2";
import { constants } from "node:http2";
import type { Clock, Timer } from "../concurrency/clock.ts";
import type { HttpAdmission } from "./http-admission.ts";
import type { HttpLimits } from "./http-limits.ts";
import { limitStalls, onceEnded, type UnreadResponses } from "./unread-responses.ts";

export type Http2SessionLimits = Pick<HttpLimits, "idleTimeoutMs" | "requestTimeoutMs" | "answerTimeoutMs">;

export interface Http2SessionsDeps {
  readonly clock: Clock;
  readonly admission: HttpAdmission;
  readonly unread: UnreadResponses;
}

/** From the goodbye to the end of the connection. */
const goodbyeMs = 5_000;

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
    // Known now: Node takes the socket away from a session that is closed.
    const { remoteAddress, remotePort } = session.socket;
    const leave = () => {
      session.close();
      idle = clock.setTimer(goodbyeMs, () => admission.hangUp({ remoteAddress, remotePort }));
    };
    const waitForStreams = () => clock.setTimer(this.limits.idleTimeoutMs, leave);
    let idle: Timer = waitForStreams();
    // Before the handler, which may answer at once.
    session.prependListener("stream", (stream) => {
      idle.cancel();
      open.add(stream);
      this.limitRequest(stream);
      this.limitAnswer(session, stream);
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
    const timer = this.deps.clock.setTimer(this.limits.requestTimeoutMs, () => {
      stream.close(constants.NGHTTP2_CANCEL);
    });
    stream.once("end", () => timer.cancel());
    stream.once("close", () => timer.cancel());
  }

  /** A client can keep its window shut, and so hold the answer, the stream and the connection for ever. */
  private limitAnswer(session: ServerHttp2Session, stream: ServerHttp2Stream): void {
    const { clock, unread } = this.deps;
    const { answerTimeoutMs } = this.limits;
    limitStalls(stream, () => clock.setTimer(answerTimeoutMs, () => stream.close(constants.NGHTTP2_CANCEL)));
    onceEnded(stream, () => {
      if (stream.destroyed) return;
      const cut = () => session.destroy();
      const timer = clock.setTimer(answerTimeoutMs, cut);
      stream.once("close", () => timer.cancel());
      unread.add(stream, cut);
    });
  }
}
