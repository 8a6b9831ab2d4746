// How one request reaches an API server. Two things carry requests: HTTP to a real or
// embedded server, and a direct call to the embedded one. Everything above this seam
// (paths, semantics, errors) is the same code for both.

export interface KubeRequest {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Absolute path, already escaped, e.g. /api/v1/namespaces/a/pods/b. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly contentType?: string;
  readonly accept?: string;
  /** A JSON value. */
  readonly body?: unknown;
  /** A longer answer is refused with "too-large"; absent: the transport's own limit for single objects. */
  readonly answerBytesMax?: number;
}

export interface KubeResponse {
  readonly status: number;
  /** Parsed JSON, or the text where the server did not answer JSON (a proxy, a bare 404). */
  readonly body: unknown;
  readonly retryAfterSeconds?: number;
  /** The time by the server's clock, as it wrote it. */
  readonly date?: string;
}

export interface KubeTransport {
  /** Resolves for every HTTP status; rejects with a KubeApiError only where there was no whole answer. */
  send(request: KubeRequest, signal: AbortSignal): Promise<KubeResponse>;
  /**
   * Opens a watch. The lines come as parsed JSON values, one per event; a normal end of the
   * stream ends the iteration, a broken one throws. The connection is gone when iteration
   * ends in any way.
   */
  stream(request: KubeRequest, signal: AbortSignal): Promise<KubeStream>;
  close(): Promise<void>;
}

export interface KubeStream {
  readonly status: number;
  /** The whole answer when the server refused the watch (status other than 200). */
  readonly refusal?: KubeResponse;
  readonly values: AsyncIterable<unknown>;
}
