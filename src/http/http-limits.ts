// Every phase of a connection's life has a limit (K10), the same for both versions
// of HTTP. The defaults suit probes, scrapes and calls of pods; nothing sent to krane
// is large or slow.

export interface HttpLimits {
  /** From the connection to the first bytes, or with TLS to the end of the handshake. */
  readonly greetingTimeoutMs: number;
  /** From the connection, or the end of the request before, to the last header. */
  readonly headersTimeoutMs: number;
  /** From the first byte of a request to the last one of its body. */
  readonly requestTimeoutMs: number;
  /**
   * From the end of an answer, as its handler wrote it, to the last byte that the client
   * takes; and in a stream, which may be open for hours, from a message that the client
   * does not take to the moment when it does.
   */
  readonly answerTimeoutMs: number;
  /** Complete answers that wait for their clients; above it, whoever waits longest is cut. */
  readonly answerBytesMax: number;
  /** A connection without a request in flight is closed after this. */
  readonly idleTimeoutMs: number;
  /** How long a stop waits for requests in flight: a third of what the whole process has. */
  readonly drainTimeoutMs: number;
  readonly headerBytesMax: number;
  /** Further ones take the place of those without a request. Below the usual limit on open files. */
  readonly connectionsMax: number;
  /** Of one address. A large part of all, because a proxy is one address too. */
  readonly connectionsPerAddressMax: number;
  /** Requests at the same time on one HTTP/2 connection. */
  readonly streamsMax: number;
  /** The same on one HTTP/1.1 connection, where only pipelining makes it more than one. */
  readonly pipelinedMax: number;
}

export const defaultHttpLimits: HttpLimits = {
  greetingTimeoutMs: 5_000,
  headersTimeoutMs: 30_000,
  requestTimeoutMs: 60_000,
  answerTimeoutMs: 30_000,
  answerBytesMax: 64 * 1024 * 1024,
  idleTimeoutMs: 60_000,
  drainTimeoutMs: 10_000,
  headerBytesMax: 16 * 1024,
  connectionsMax: 900,
  connectionsPerAddressMax: 450,
  streamsMax: 100,
  pipelinedMax: 16,
};
