// The interface that carries a request to an API server: over HTTP, or as a direct call to the embedded server.
// Everything above it (paths, semantics, errors) is the same code for both.

export interface KubeRequest {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Absolute path, already escaped, e.g. /api/v1/namespaces/a/pods/b. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly contentType?: string;
  readonly accept?: string;
  /** A JSON value. */
  readonly body?: unknown;
  /** A longer response fails with "too-large"; absent: the transport's limit for single objects. */
  readonly answerBytesMax?: number;
  /** Absent: the request may be sent at any time. */
  readonly permit?: SendPermit;
}

/** A condition for sending a request, which may have waited for a connection or a credential. */
export interface SendPermit {
  /** Called right before the request is sent; if it throws, nothing is sent. */
  check(): void;
  /** From then on, until the connection is reset. */
  readonly timeoutMs: number;
}

export interface KubeResponse {
  readonly status: number;
  /** Parsed JSON, or the text if the response is not JSON (a proxy, a bare 404). */
  readonly body: unknown;
  readonly retryAfterSeconds?: number;
  /** The Date header. */
  readonly date?: string;
}

export interface KubeTransport {
  /** Resolves for every HTTP status; rejects with a KubeApiError only if there was no complete response. */
  send(request: KubeRequest, signal: AbortSignal): Promise<KubeResponse>;
  /**
   * Opens a watch and yields its lines as parsed JSON values, one per event. A normal end of the stream ends the
   * iteration, a broken one throws. The connection is closed when the iteration ends, in any way.
   */
  stream(request: KubeRequest, signal: AbortSignal): Promise<KubeStream>;
  close(): Promise<void>;
}

export interface KubeStream {
  readonly status: number;
  /** The whole response if the server refused the watch (status other than 200). */
  readonly refusal?: KubeResponse;
  readonly values: AsyncIterable<unknown>;
}

/** For responses that are not JSON: the logs of pods. */
export interface ByteTransport {
  /** Like `stream`, without interpreting what comes. */
  bytes(request: KubeRequest, signal: AbortSignal): Promise<KubeBytes>;
}

export interface KubeBytes {
  readonly status: number;
  /** The whole response if the server refused the request (status other than 200). */
  readonly refusal?: KubeResponse;
  readonly bytes: AsyncIterable<Buffer>;
}
