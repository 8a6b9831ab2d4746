// Which HTTP/2 connection a request goes to: the one there is, or a new one where there
// is none or the peer has said GOAWAY. A connection that drains is kept, and pinged,
// until its last stream has ended. Nothing is connected before the first request.
import type { ClientHttp2Stream, OutgoingHttpHeaders } from "node:http2";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Clock } from "../concurrency/clock.ts";
import { type LiveSession, openSession, type SessionOptions } from "./live-session.ts";

// A GOAWAY may come between the look at a session and the request on it. One more try
// covers that; a peer that says it every time is down.
const triesMax = 2;

/** The shape that the RPC library expects of whoever keeps its connections. */
export interface Sessions {
  readonly authority: string;
  request(method: string, path: string, headers: OutgoingHttpHeaders): Promise<ClientHttp2Stream>;
  notifyResponseByteRead(stream: ClientHttp2Stream): void;
  /** How many connections were opened so far. */
  readonly opened: number;
  /** Ends every call. Resolves when all sockets are closed; nothing can be sent afterwards. */
  close(): Promise<void>;
}

export function createSessions(options: SessionOptions, clock: Clock): Sessions {
  const sessions = new Set<LiveSession>();
  let current: LiveSession | undefined;
  let opened = 0;
  let closed = false;

  function usable(): LiveSession {
    if (closed) throw closedError();
    if (current?.takesRequests) return current;
    const session = openSession(options, clock);
    opened += 1;
    sessions.add(session);
    void session.ended.then(() => sessions.delete(session));
    current = session;
    return session;
  }

  return {
    authority: options.url.origin,
    async request(method, path, headers) {
      for (let tries = 1; ; tries++) {
        const session = usable();
        await session.connected;
        try {
          return session.request({ ...headers, ":method": method, ":path": path });
        } catch (error) {
          if (session.takesRequests || tries >= triesMax) throw error;
        }
      }
    },
    notifyResponseByteRead(stream) {
      for (const session of sessions) session.heard(stream);
    },
    get opened() {
      return opened;
    },
    async close() {
      closed = true;
      const ends = [...sessions].map((session) => {
        session.destroy(closedError());
        return session.ended;
      });
      await Promise.all(ends);
    },
  };
}

function closedError(): ConnectError {
  return new ConnectError("the connection to the control plane was closed", Code.Canceled);
}
