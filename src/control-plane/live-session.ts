// Manages one HTTP/2 connection and checks it with PING frames. A peer that vanished leaves a socket that looks healthy
// for a quarter of an hour; pings notice within seconds.
//
// - Connecting has its own timeout, because pings can begin only afterwards.
// - A destroyed session is never pinged: between its destruction and its close event a ping throws, and in a timer that
//   would crash the process. The session manager of the RPC library has that bug (connect-es issue 1795).
// - destroy() closes the socket too, even if the peer reads no more bytes.
import { type ClientHttp2Stream, connect, constants, type OutgoingHttpHeaders } from "node:http2";
import { connect as connectTcp, isIP, type Socket } from "node:net";
import { connect as connectTls, TLSSocket } from "node:tls";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Clock } from "../concurrency/clock.ts";
import { pemOf, type TrustedCa } from "../config/ca-file.ts";

// More than the protocol's default of 64 KiB, with which the first snapshot would wait for acknowledgements on a
// high-latency link. It is also the most that a slow reader has to buffer.
const windowBytes = 1024 * 1024;

export interface SessionOptions {
  readonly url: URL;
  /** PEM certificates to trust instead of the system's. */
  readonly ca?: TrustedCa | undefined;
  /** The caller checks by other means, with `certificate`, who the peer is before it sends anything else. */
  readonly acceptsAnyCertificate?: boolean;
  readonly connectTimeoutMs: number;
  /** A ping is sent after this long without a frame. */
  readonly pingIntervalMs: number;
  /** The connection is dead after this long without a response to a ping. */
  readonly pingTimeoutMs: number;
  /** The peer ended the connection with ENHANCE_YOUR_CALM, which means too many pings. */
  onEnhanceYourCalm?(): void;
}

export interface LiveSession {
  /** False after the peer's GOAWAY and after the end. Open streams may still continue. */
  readonly takesRequests: boolean;
  /** Rejects if the connection could not be established. */
  readonly connected: Promise<void>;
  /** Resolves when the socket is closed. */
  readonly ended: Promise<void>;
  /** The fingerprint of the peer's certificate; empty without TLS, and before the connection is established. */
  readonly certificate: string;
  request(headers: OutgoingHttpHeaders): ClientHttp2Stream;
  /** Bytes came in on this stream: no ping is needed for a while. */
  heard(stream: ClientHttp2Stream): void;
  destroy(reason: ConnectError): void;
}

export function openSession(options: SessionOptions, clock: Clock): LiveSession {
  const { url, connectTimeoutMs, pingIntervalMs, pingTimeoutMs } = options;
  const socket = openSocket(options);
  const session = connect(url.origin, {
    createConnection: () => socket,
    settings: { enablePush: false, initialWindowSize: windowBytes },
  });
  let failure: ConnectError | undefined;
  let heardAtMs = clock.nowMs();
  let timer = clock.setTimer(connectTimeoutMs, () => destroy(`no connection within ${connectTimeoutMs} ms`));

  const connected = new Promise<void>((resolve, reject) => {
    session.once("connect", () => {
      session.setLocalWindowSize(windowBytes);
      heardAtMs = clock.nowMs();
      schedulePing();
      resolve();
    });
    session.once("close", () => reject(failure ?? unavailable(`${url.host} closed the connection`)));
  });
  // A session may end before the first request waits for it.
  connected.catch(() => undefined);
  const ended = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  // The session listens too, but detaches from its socket when it is destroyed; a later error would be uncaught.
  socket.on("error", () => undefined);
  session.on("error", (error) => {
    failure ??= error instanceof ConnectError ? error : unavailable(`${url.host}: ${error.message}`, error);
  });
  session.once("goaway", (code) => {
    if (code === constants.NGHTTP2_ENHANCE_YOUR_CALM) options.onEnhanceYourCalm?.();
  });
  session.once("close", () => timer.cancel());

  function schedulePing(): void {
    timer.cancel();
    timer = clock.setTimer(heardAtMs + pingIntervalMs - clock.nowMs(), () =>
      clock.nowMs() - heardAtMs < pingIntervalMs ? schedulePing() : ping(),
    );
  }

  function ping(): void {
    if (session.destroyed) return;
    timer = clock.setTimer(pingTimeoutMs, () => destroy(`no response to a ping within ${pingTimeoutMs} ms`));
    session.ping((error) => {
      if (error !== null || session.destroyed) return;
      heardAtMs = clock.nowMs();
      schedulePing();
    });
  }

  function destroy(reason: string | ConnectError): void {
    timer.cancel();
    failure ??= typeof reason === "string" ? unavailable(`${url.host}: ${reason}`) : reason;
    if (!session.destroyed) session.destroy(failure);
    // The session closes its socket only when everything is written, which never happens if the peer is gone.
    socket.destroy();
  }

  return {
    get takesRequests() {
      return !session.closed && !session.destroyed;
    },
    connected,
    ended,
    get certificate() {
      return socket instanceof TLSSocket ? (socket.getPeerCertificate().fingerprint256 ?? "") : "";
    },
    request: (headers) => session.request(headers),
    heard(stream) {
      if (stream.session === session) heardAtMs = clock.nowMs();
    },
    destroy,
  };
}

function openSocket({ url, ca, acceptsAnyCertificate = false }: SessionOptions): Socket {
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  if (url.protocol === "http:") return connectTcp({ host, port: Number(url.port || 80) });
  return connectTls({
    host,
    port: Number(url.port || 443),
    ALPNProtocols: ["h2"],
    // An IP address must not be sent as a server name; it is still checked against the certificate.
    ...(isIP(host) === 0 ? { servername: host } : {}),
    ...(ca === undefined ? {} : { ca: pemOf(ca) }),
    rejectUnauthorized: !acceptsAnyCertificate,
  });
}

function unavailable(reason: string, cause?: unknown): ConnectError {
  return new ConnectError(reason, Code.Unavailable, undefined, undefined, cause);
}
