// KubeTransport over HTTP/1.1. Single requests share a pool of keep-alive connections; each watch has its own
// connection, so it never takes a slot from them.
//
// - Every exchange has a deadline and a size limit (K10), and leaves nothing behind when it ends.
// - A 401 means that the server did nothing, so any request is sent once more with a renewed credential.
// - After a broken connection, what the server did is unknown. Only a GET is repeated here, once; the caller decides
//   about a write of unknown outcome.
// - Compression is off: between krane and its API server, bandwidth is cheaper than CPU on both sides.
import type { Dispatcher } from "undici";
import { DeadlineError, linkSignals, withTimeout } from "../concurrency/abort.ts";
import { onAbort } from "../concurrency/abort-listener.ts";
import type { Clock, Timer } from "../concurrency/clock.ts";
import type { Credential, KubeEndpoint } from "./credentials.ts";
import { KubeApiError } from "./errors.ts";
import { HttpConnections } from "./http-connections.ts";
import { LineSplitter, parseJson } from "./json-lines.ts";
import type {
  ByteTransport,
  KubeBytes,
  KubeRequest,
  KubeResponse,
  KubeStream,
  KubeTransport,
} from "./transport.ts";

export interface HttpTransportOptions {
  readonly endpoint: KubeEndpoint;
  /** Requests in flight at most; the rest wait for a connection. Watches do not count. */
  readonly connections: number;
  readonly userAgent?: string;
  /** From send() to the whole response, or from stream() to its first byte. Default 60 s, like the server's own. */
  readonly requestTimeoutMs?: number;
  /** Default 10 s. */
  readonly connectTimeoutMs?: number;
  /** A stream that is silent for this long is dead: a watch has a bookmark every 60 s. Default 90 s. */
  readonly watchSilenceMs?: number;
  /** For requests without a limit of their own. Default 8 MiB: objects are at most 3 MiB. */
  readonly answerBytesMax?: number;
  /** Default 16 MiB. */
  readonly watchLineBytesMax?: number;
}

export interface HttpTransportDeps {
  readonly clock: Clock;
}

export function createHttpTransport(
  options: HttpTransportOptions,
  deps: HttpTransportDeps,
): KubeTransport & ByteTransport {
  return new HttpTransport(options, deps);
}

class HttpTransport implements KubeTransport, ByteTransport {
  private readonly clock: Clock;
  private readonly options: Required<HttpTransportOptions>;
  private readonly pathPrefix: string;
  private readonly connections: HttpConnections;

  constructor(options: HttpTransportOptions, deps: HttpTransportDeps) {
    this.clock = deps.clock;
    this.pathPrefix = new URL(options.endpoint.server).pathname.replace(/\/+$/, "");
    this.options = {
      userAgent: "krane",
      requestTimeoutMs: 60_000,
      connectTimeoutMs: 10_000,
      watchSilenceMs: 90_000,
      answerBytesMax: 8 * 2 ** 20,
      watchLineBytesMax: 16 * 2 ** 20,
      ...options,
    };
    this.connections = new HttpConnections(this.options);
  }

  send(request: KubeRequest, signal: AbortSignal): Promise<KubeResponse> {
    return this.inTime(request, signal, (credential, inner) => this.exchange(request, credential, inner));
  }

  stream(request: KubeRequest, signal: AbortSignal): Promise<KubeStream> {
    return this.inTime(request, signal, async (credential, inner): Promise<KubeStream> => {
      const { status, refusal, bytes } = await this.openBody(request, credential, inner, signal);
      if (refusal !== undefined) return { status, refusal, values: noValues() };
      return { status, values: this.readValues(request, bytes) };
    });
  }

  bytes(request: KubeRequest, signal: AbortSignal): Promise<KubeBytes> {
    return this.inTime(request, signal, (credential, inner) =>
      this.openBody(request, credential, inner, signal),
    );
  }

  close(): Promise<void> {
    return this.connections.close();
  }

  /** Runs the exchange, and repeats it after a 401 if the credential could be renewed. */
  private async inTime<A extends { readonly status: number }>(
    request: KubeRequest,
    signal: AbortSignal,
    exchange: (credential: Credential, signal: AbortSignal) => Promise<A>,
  ): Promise<A> {
    const { endpoint, requestTimeoutMs } = this.options;
    try {
      return await withTimeout(this.clock, requestTimeoutMs, signal, async (inner) => {
        const credential = await endpoint.credentials.current(inner);
        const answer = await exchange(credential, inner);
        if (answer.status !== 401) return answer;
        const renewed = await endpoint.credentials.renew(credential, inner);
        return renewed === credential ? answer : await exchange(renewed, inner);
      });
    } catch (error) {
      throw exchangeError(describe(request), error, signal);
    }
  }

  private async exchange(
    request: KubeRequest,
    credential: Credential,
    signal: AbortSignal,
  ): Promise<KubeResponse> {
    const pool = this.connections.poolFor(credential);
    const wire = this.wireRequest(request, credential);
    let hasBegun = false;
    const limits = {
      ...this.answerLimits(request),
      onSend: () => this.startSending(request),
      onBegin: () => {
        hasBegun = true;
      },
    };
    try {
      return parseAnswer(request, credential, await requestWhole(pool, wire, limits, signal));
    } catch (error) {
      // The server closed an idle connection just as it was reused.
      if (request.method !== "GET" || hasBegun || signal.aborted || !isConnectionReset(error)) throw error;
      return parseAnswer(request, credential, await requestWhole(pool, wire, limits, signal));
    }
  }

  /** Throws if the request may not be sent any more. Otherwise returns what limits its time. */
  private startSending({ permit }: KubeRequest): Deadline | undefined {
    if (permit === undefined) return undefined;
    permit.check();
    const { timeoutMs } = permit;
    return (expire) => this.clock.setTimer(timeoutMs, () => expire(new DeadlineError(timeoutMs)));
  }

  private answerLimits(request: KubeRequest) {
    const bytesMax = request.answerBytesMax ?? this.options.answerBytesMax;
    const tooLarge = () => new KubeApiError("too-large", `${describe(request)}: more than ${bytesMax} bytes`);
    return { bytesMax, tooLarge };
  }

  private async openBody(
    request: KubeRequest,
    credential: Credential,
    opening: AbortSignal,
    signal: AbortSignal,
  ): Promise<KubeBytes> {
    const client = this.connections.openClient(credential);
    const life = linkSignals(opening, signal);
    const end = () => {
      life.release();
      return this.connections.drop(client);
    };
    // Also for a stream whose opening timed out, so that nobody ever reads it.
    onAbort(life.signal, () => void end().catch(() => undefined));
    try {
      const answer = await client.request({ ...this.wireRequest(request, credential), signal: life.signal });
      if (answer.statusCode === 200) {
        return { status: 200, bytes: readBytes(describe(request), answer.body, end, signal) };
      }
      const refusal = await readRefusal(request, credential, answer, this.answerLimits(request));
      await end();
      return { status: answer.statusCode, refusal, bytes: noValues() };
    } catch (error) {
      await end();
      throw error;
    }
  }

  private async *readValues(
    request: KubeRequest,
    bytes: AsyncIterable<Buffer>,
  ): AsyncGenerator<unknown, void, undefined> {
    const what = describe(request);
    const splitter = new LineSplitter(this.options.watchLineBytesMax);
    for await (const chunk of bytes) {
      for (const line of splitter.push(chunk)) yield parseJson(what, line.toString("utf8"));
    }
    if (splitter.pendingBytes > 0) throw new KubeApiError("network", `${what}: cut inside a line`);
  }

  private wireRequest(request: KubeRequest, credential: Credential): Dispatcher.DispatchOptions {
    const headers: Record<string, string> = {
      accept: request.accept ?? "application/json",
      "user-agent": this.options.userAgent,
    };
    if (request.contentType !== undefined) headers["content-type"] = request.contentType;
    if (credential.authorization !== undefined) headers["authorization"] = credential.authorization;
    const query = request.query === undefined ? "" : new URLSearchParams(request.query).toString();
    return {
      method: request.method,
      path: `${this.pathPrefix}${request.path}${query === "" ? "" : `?${query}`}`,
      headers,
      ...(request.body === undefined ? {} : { body: bodyText(request.body) }),
    };
  }
}

// The API server reads the body of an apply with a YAML parser. YAML folds U+0085, U+2028 and U+2029 as line
// breaks, with the blanks around them, and rejects control characters and byte order marks. Escapes mean the same in
// JSON and in YAML.
const notPlainInYaml = /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g;

function bodyText(body: unknown): string {
  const escaped = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return JSON.stringify(body).replace(notPlainInYaml, escaped);
}

/** Without the query: selectors and continue tokens are noise in a message. */
function describe(request: KubeRequest): string {
  return `${request.method} ${request.path}`;
}

async function readRefusal(
  request: KubeRequest,
  credential: Credential,
  { statusCode: status, headers, body }: Dispatcher.ResponseData,
  { bytesMax, tooLarge }: AnswerLimits,
): Promise<KubeResponse> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    // Leaving the loop destroys the body and its connection, so the rest is never read.
    if (bytes > bytesMax) throw tooLarge();
    chunks.push(chunk);
  }
  return parseAnswer(request, credential, { status, headers, body: Buffer.concat(chunks, bytes) });
}

function parseAnswer(
  request: KubeRequest,
  credential: Credential,
  { status, headers, body }: WholeAnswer,
): KubeResponse {
  const whole = body.toString("utf8");
  const text = status < 300 ? whole : withoutCredential(whole, credential);
  const isJson = String(headers["content-type"] ?? "").includes("json");
  const retryAfterSeconds = Number.parseInt(String(headers["retry-after"]), 10);
  return {
    status,
    body: isJson ? parseJson(describe(request), text) : text,
    ...(Number.isNaN(retryAfterSeconds) ? {} : { retryAfterSeconds }),
    ...(typeof headers["date"] === "string" && { date: headers["date"] }),
  };
}

// Anything shorter is not a secret, and could be part of any word.
const credentialCharsMin = 8;

/** A proxy may quote the request that it refuses, and its message goes into logs and status (K7). */
function withoutCredential(text: string, { authorization }: Credential): string {
  const value = authorization?.split(" ").at(-1) ?? "";
  return value.length < credentialCharsMin ? text : text.replaceAll(value, "[redacted]");
}

/** The connection is closed when the iteration ends, in any way. */
async function* readBytes(
  what: string,
  body: AsyncIterable<Buffer>,
  end: () => Promise<void>,
  signal: AbortSignal,
): AsyncGenerator<Buffer, void, undefined> {
  try {
    yield* body;
  } catch (error) {
    throw exchangeError(what, error, signal);
  } finally {
    await end();
  }
}

async function* noValues(): AsyncGenerator<never, void, undefined> {
  // A refused stream has no content.
}

const timeouts = new Set([
  "UND_ERR_CONNECT_TIMEOUT",
  "UND_ERR_HEADERS_TIMEOUT",
  "UND_ERR_BODY_TIMEOUT",
  "ETIMEDOUT",
]);

const resets = new Set(["UND_ERR_SOCKET", "ECONNRESET", "EPIPE"]);

/**
 * Converts an error of the HTTP library to a KubeApiError, so that callers see only those and their own abort. If the
 * caller aborted, returns the signal's reason.
 */
function exchangeError(what: string, error: unknown, signal: AbortSignal): unknown {
  if (signal.aborted) return signal.reason;
  if (error instanceof KubeApiError) return error;
  if (error instanceof DeadlineError) {
    return new KubeApiError("timeout", `${what}: ${error.message}`, { cause: error });
  }
  const code = errorCode(error);
  // A bug in this process must not be retried as a network failure.
  if (code === undefined || code === "UND_ERR_INVALID_ARG") return error;
  const kind = timeouts.has(code) ? "timeout" : "network";
  const message = error instanceof Error && error.message !== "" ? error.message : code;
  return new KubeApiError(kind, `${what}: ${message}`, { cause: error });
}

/** Whether the connection was reset, as happens to a reused idle connection. */
function isConnectionReset(error: unknown): boolean {
  return resets.has(errorCode(error) ?? "");
}

function errorCode(error: unknown): string | undefined {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" ? code : undefined;
}

type Headers = Parameters<NonNullable<Dispatcher.DispatchHandler["onResponseStart"]>>[2];

interface WholeAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Buffer;
}

interface AnswerLimits {
  readonly bytesMax: number;
  /** The error for a longer response; the rest of it is not read. */
  tooLarge(): Error;
  /** Called right before the request is sent. If it throws, nothing is sent. */
  onSend?(): Deadline | undefined;
  /** Called with the first byte of the response: from here on, the server has seen the request. */
  onBegin?(): void;
}

/** Starts the timer after which the exchange fails with that error. */
type Deadline = (expire: (error: Error) => void) => Timer;

/**
 * Sends one request and collects the whole response. Responses to single requests are small, and a Node stream in
 * between would cost more than the request itself. Rejects with the library's error, with `tooLarge`, or with the
 * signal's reason.
 */
function requestWhole(
  dispatcher: Dispatcher,
  request: Dispatcher.DispatchOptions,
  limits: AnswerLimits,
  signal: AbortSignal,
): Promise<WholeAnswer> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    let connection: Dispatcher.DispatchController | undefined;
    let status = 0;
    let headers: Headers = {};
    const chunks: Buffer[] = [];
    let bytes = 0;
    let timer: Timer | undefined;
    const unlisten = onAbort(signal, () => fail(signal.reason));
    const stopListening = () => {
      unlisten();
      timer?.cancel();
    };
    const fail = (error: Error) => {
      stopListening();
      reject(error);
      connection?.abort(error);
    };
    dispatcher.dispatch(request, {
      onRequestStart(controller) {
        connection = controller;
        // If this throws, nothing is sent and the connection stays usable. abort() would destroy it.
        signal.throwIfAborted();
        timer = limits.onSend?.()?.(fail);
      },
      onResponseStart(_, statusCode, answerHeaders) {
        limits.onBegin?.();
        status = statusCode;
        headers = answerHeaders;
      },
      onResponseData(_, chunk) {
        bytes += chunk.length;
        if (bytes > limits.bytesMax) fail(limits.tooLarge());
        else chunks.push(chunk);
      },
      onResponseEnd() {
        stopListening();
        const [only] = chunks;
        resolve({ status, headers, body: chunks.length === 1 && only ? only : Buffer.concat(chunks, bytes) });
      },
      onResponseError(_, error) {
        stopListening();
        reject(error);
      },
    });
  });
}
