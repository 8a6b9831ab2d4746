// Chooses the HTTP/2 connection for a request: the current one, or a new one if it is missing or the peer has sent
// GOAWAY. A draining connection is kept, and pinged, until its last stream has ended. The first request connects.
//
// A peer that ends a connection with ENHANCE_YOUR_CALM is pinged half as often from then on, because it would end the
// next one as well. A proxy may allow one ping in five minutes; more patience than that would make pings useless. The
// longer interval lasts as long as the process.
import type { ClientHttp2Stream, OutgoingHttpHeaders } from "node:http2";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Clock } from "../concurrency/clock.ts";
import { type LiveSession, openSession, type SessionOptions } from "./live-session.ts";

// A GOAWAY may arrive between choosing a session and using it. One retry covers that; a peer that sends it every time is
// down.
const triesMax = 2;

const pingIntervalMaxMs = 300_000;

/** Includes the interface that the RPC library expects of a session manager. */
export interface Sessions {
  readonly authority: string;
  request(method: string, path: string, headers: OutgoingHttpHeaders): Promise<ClientHttp2Stream>;
  notifyResponseByteRead(stream: ClientHttp2Stream): void;
  /** How many connections have been opened so far. */
  readonly opened: number;
  /** Ends every call. Resolves when all sockets are closed; nothing can be sent afterwards. */
  close(): Promise<void>;
}

export function createSessions(options: SessionOptions, clock: Clock): Sessions {
  const sessions = new Set<LiveSession>();
  let current: LiveSession | undefined;
  let opened = 0;
  let closed = false;
  let { pingIntervalMs } = options;
  const onEnhanceYourCalm = () => {
    pingIntervalMs = Math.max(pingIntervalMs, Math.min(2 * pingIntervalMs, pingIntervalMaxMs));
  };

  function usable(): LiveSession {
    if (closed) throw closedError();
    if (current?.takesRequests) return current;
    const session = openSession({ ...options, pingIntervalMs, onEnhanceYourCalm }, clock);
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
