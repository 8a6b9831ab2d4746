// Creates the HTTP/1.1 and HTTP/2 servers behind one port, not yet listening.
//
// The HTTP/1.1 server is the one that listens, because Node enforces its timeouts only then. HTTP/2 connections are
// handed over to the HTTP/2 server: without TLS by their first bytes, with TLS by the protocol that ALPN selected.
import assert from "node:assert/strict";
import { createServer as createHttp1Server, type Server, type ServerOptions } from "node:http";
import { createServer as createHttp2Server, type Http2Server } from "node:http2";
import { createServer as createHttpsServer, type Server as TlsServer } from "node:https";
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { Clock, Timer } from "../concurrency/clock.ts";
import type { HttpAdmission } from "./http-admission.ts";
import type { HttpLimits } from "./http-limits.ts";
import type { HttpRequests } from "./http-requests.ts";
import { Http2Sessions } from "./http2-sessions.ts";
import type { CertificatePair } from "./tls-certificate.ts";
import type { UnreadResponses } from "./unread-responses.ts";

export interface HttpServers {
  readonly listener: Server;
  /** Present with TLS: sets the certificate for new handshakes. */
  readonly renewCertificate?: (pair: CertificatePair) => void;
  /** Closes idle connections, and the others when their last request has ended. */
  closeConnections(): void;
}

export interface HttpServersDeps {
  readonly clock: Clock;
  readonly admission: HttpAdmission;
  readonly unread: UnreadResponses;
}

export function createCleartextServers(
  limits: HttpLimits,
  requests: HttpRequests,
  deps: HttpServersDeps,
): HttpServers {
  const listener = createHttp1Server(http1Options(limits), requests.receive);
  const sessions = new Http2Sessions(limits, deps);
  const http2 = createHttp2(limits, requests, sessions);
  const speakHttp1 = takeOverListener(listener, "connection");
  const detection = new ProtocolDetection(
    { timeoutMs: limits.greetingTimeoutMs },
    {
      clock: deps.clock,
      handOver: (socket, protocol) => {
        if (protocol === "h2") {
          // node:http allows half-open sockets, which node:http2 does not expect: it would keep a connection that the
          // client has closed until the idle timeout.
          socket.allowHalfOpen = false;
          http2.emit("connection", socket);
        } else {
          requests.trackHttp1Connection(socket);
          speakHttp1(socket);
        }
      },
    },
  );
  listener.on("connection", (socket: Socket) => {
    if (deps.admission.admit(socket)) detection.accept(socket);
  });
  return {
    listener,
    closeConnections() {
      detection.destroyUndecided();
      requests.closeHttp1Connections();
      sessions.closeAll();
    },
  };
}

export function createTlsServers(
  limits: HttpLimits,
  certificate: CertificatePair,
  requests: HttpRequests,
  deps: HttpServersDeps,
): HttpServers {
  const tlsOptions = {
    ...certificate,
    ALPNProtocols: ["h2", "http/1.1"],
    handshakeTimeout: limits.greetingTimeoutMs,
  };
  const listener: TlsServer = createHttpsServer({ ...http1Options(limits), ...tlsOptions }, requests.receive);
  const sessions = new Http2Sessions(limits, deps);
  const http2 = createHttp2(limits, requests, sessions);
  const shakeHands = takeOverListener(listener, "connection");
  listener.on("connection", (socket: Socket) => {
    if (deps.admission.admit(socket)) shakeHands(socket);
  });
  const speakHttp1 = takeOverListener(listener, "secureConnection");
  listener.on("secureConnection", (socket: TLSSocket) => {
    if (socket.alpnProtocol === "h2") {
      http2.emit("connection", socket);
    } else {
      requests.trackHttp1Connection(socket);
      speakHttp1(socket);
    }
  });
  return {
    listener,
    renewCertificate: (pair) => listener.setSecureContext(pair),
    closeConnections() {
      requests.closeHttp1Connections();
      sessions.closeAll();
    },
  };
}

function http1Options(limits: HttpLimits): ServerOptions {
  return {
    headersTimeout: limits.headersTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
    keepAliveTimeout: limits.idleTimeoutMs,
    connectionsCheckingInterval: Math.min(limits.headersTimeoutMs, 5_000),
    maxHeaderSize: limits.headerBytesMax,
  };
}

function createHttp2(limits: HttpLimits, requests: HttpRequests, sessions: Http2Sessions): Http2Server {
  const http2 = createHttp2Server(
    {
      // Node itself counts streams that a client opens only to reset, and closes the connection. The limits below bound
      // what such a client can hold meanwhile.
      maxSessionInvalidFrames: 100,
      maxSessionMemory: 4,
      settings: {
        enablePush: false,
        maxConcurrentStreams: limits.streamsMax,
        maxHeaderListSize: limits.headerBytesMax,
      },
    },
    requests.receive,
  );
  http2.on("session", (session) => sessions.add(session));
  return http2;
}

/** Removes the listener with which Node's server starts to handle a socket, and returns it as a function. */
function takeOverListener(
  server: Server,
  event: "connection" | "secureConnection",
): (socket: Socket) => void {
  const [listener, ...others] = server.listeners(event);
  assert.ok(listener && others.length === 0, `node:http has one listener for ${event}`);
  server.removeAllListeners(event);
  return (socket) => listener.call(server, socket);
}

type Protocol = "http/1.1" | "h2";

const http2Preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

/** Undefined while the bytes are only the beginning of a preface. */
function protocolOf(firstBytes: Buffer): Protocol | undefined {
  const length = Math.min(firstBytes.length, http2Preface.length);
  if (firstBytes.compare(http2Preface, 0, length, 0, length) !== 0) return "http/1.1";
  return length === http2Preface.length ? "h2" : undefined;
}

/**
 * Detects the protocol of a connection without TLS from its first bytes: an HTTP/2 client starts with a fixed preface
 * that is not a valid HTTP/1.1 request. node:http2 alone would reject HTTP/1.1 clients such as kubelets.
 */
class ProtocolDetection {
  private readonly timeoutMs: number;
  private readonly clock: Clock;
  private readonly handOver: (socket: Socket, protocol: Protocol) => void;
  private readonly undecided = new Map<Socket, Timer>();

  constructor(
    options: { readonly timeoutMs: number },
    deps: { readonly clock: Clock; handOver(socket: Socket, protocol: Protocol): void },
  ) {
    this.timeoutMs = options.timeoutMs;
    this.clock = deps.clock;
    this.handOver = deps.handOver;
  }

  /** Hands the socket over, with nothing consumed, once its protocol is known. */
  accept(socket: Socket): void {
    let firstBytes: Buffer = Buffer.alloc(0);
    // One deadline for the whole detection: a client that sends a byte now and then could keep a renewed timeout from
    // firing.
    const timer = this.clock.setTimer(this.timeoutMs, giveUp);
    const onReadable = () => {
      const chunk: Buffer | null = socket.read();
      if (chunk === null) return;
      firstBytes = Buffer.concat([firstBytes, chunk]);
      const protocol = protocolOf(firstBytes);
      if (protocol === undefined) return;
      release();
      socket.unshift(firstBytes);
      this.handOver(socket, protocol);
    };
    const release = () => {
      timer.cancel();
      this.undecided.delete(socket);
      socket.off("readable", onReadable).off("end", giveUp).off("error", giveUp).off("close", release);
    };
    function giveUp() {
      socket.destroy();
    }
    this.undecided.set(socket, timer);
    socket.on("readable", onReadable).on("end", giveUp).on("error", giveUp).on("close", release);
  }

  destroyUndecided(): void {
    for (const socket of this.undecided.keys()) socket.destroy();
  }
}
