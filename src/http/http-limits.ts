// Limits for every phase of a connection (K10), the same for HTTP/1.1 and HTTP/2. The defaults suit probes, scrapes and
// calls from pods; nothing that is sent to krane is large or slow.

export interface HttpLimits {
  /** From the connection to the first bytes, or to the end of the TLS handshake. */
  readonly greetingTimeoutMs: number;
  /** From the connection, or the end of the previous request, to the last header. */
  readonly headersTimeoutMs: number;
  /** From the first byte of a request to the last byte of its body. */
  readonly requestTimeoutMs: number;
  /**
   * How long a client may take to read a response after the handler has ended it. In a stream, which may stay open for
   * hours: how long a client may leave a message unread.
   */
  readonly responseTimeoutMs: number;
  /** Bytes of complete responses that clients have not read yet. Above it, the oldest responses are dropped. */
  readonly responseBytesMax: number;
  /** A connection without a request in flight is closed after this time. */
  readonly idleTimeoutMs: number;
  /** How long a stop waits for requests in flight: a third of the whole process's time limit. */
  readonly drainTimeoutMs: number;
  readonly headerBytesMax: number;
  /** Beyond it, new connections replace idle ones. Below the usual limit on open files. */
  readonly connectionsMax: number;
  /** For one address. A large share, because a proxy is one address too. */
  readonly connectionsPerAddressMax: number;
  /** Concurrent requests on one HTTP/2 connection. */
  readonly streamsMax: number;
  /** Concurrent requests on one HTTP/1.1 connection, which is more than one only with pipelining. */
  readonly pipelinedMax: number;
}

export const defaultHttpLimits: HttpLimits = {
  greetingTimeoutMs: 5_000,
  headersTimeoutMs: 30_000,
  requestTimeoutMs: 60_000,
  responseTimeoutMs: 30_000,
  responseBytesMax: 64 * 1024 * 1024,
  idleTimeoutMs: 60_000,
  drainTimeoutMs: 10_000,
  headerBytesMax: 16 * 1024,
  connectionsMax: 900,
  connectionsPerAddressMax: 450,
  streamsMax: 100,
  pipelinedMax: 16,
};
