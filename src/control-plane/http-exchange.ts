// Sends one request on an HTTP/2 stream and reads the whole response.
//
// - The size of the response is limited, and checked before memory is allocated.
// - An exchange that is aborted, or whose response is rejected, resets the stream, so that the server can stop working.
// - Node keeps the object of an ended stream until the next full garbage collection. Everything that it references is
//   released here; otherwise thousands of small responses would trigger that collection.
import { type ClientHttp2Stream, constants, type IncomingHttpHeaders } from "node:http2";
import { Code, ConnectError } from "@connectrpc/connect";
import { onAbort } from "../concurrency/abort-listener.ts";

export type AnswerHeaders = IncomingHttpHeaders & { readonly ":status"?: number };

export interface ExchangeOptions<Verdict> {
  readonly body: Uint8Array;
  /** The largest response. */
  readonly bytesMax: number;
  /** Checks the headers before the body is read. If it throws, the exchange fails with that error. */
  judge(headers: AnswerHeaders): Verdict;
}

export interface Answer<Verdict> {
  readonly verdict: Verdict;
  readonly bytes: Uint8Array;
}

/** Everything that an exchange references, in one object that can be released. */
interface Held<Verdict> extends Omit<ExchangeOptions<Verdict>, "body"> {
  readonly resolve: (answer: Answer<Verdict>) => void;
  readonly reject: (reason: unknown) => void;
  readonly chunks: Uint8Array[];
  readonly stopListening: () => void;
  size: number;
  judged: { readonly verdict: Verdict } | undefined;
}

export function exchange<Verdict>(
  stream: ClientHttp2Stream,
  { body, bytesMax, judge }: ExchangeOptions<Verdict>,
  signal: AbortSignal,
): Promise<Answer<Verdict>> {
  return new Promise((resolve, reject) => {
    const stopListening = onAbort(signal, () => open.fail(signal.reason));
    const open = new OpenExchange<Verdict>(stream, {
      resolve,
      reject,
      stopListening,
      judge,
      bytesMax,
      chunks: [],
      size: 0,
      judged: undefined,
    });
    open.listen();
    if (signal.aborted) open.fail(signal.reason);
    else stream.end(body);
  });
}

// A class, because a closure inside `exchange` would keep everything in its scope alive.
class OpenExchange<Verdict> {
  private readonly stream: ClientHttp2Stream;
  /** Undefined once the exchange has ended. */
  private held: Held<Verdict> | undefined;

  constructor(stream: ClientHttp2Stream, held: Held<Verdict>) {
    this.stream = stream;
    this.held = held;
  }

  listen(): void {
    this.stream.on("response", (headers: AnswerHeaders) => this.orFail(() => this.takeHeaders(headers)));
    this.stream.on("data", (chunk: Uint8Array) => this.orFail(() => this.takeChunk(chunk)));
    this.stream.on("end", () => this.end());
    this.stream.on("error", (error) => this.fail(connectionError(error)));
    this.stream.on("close", () => {
      if (this.held === undefined) return;
      this.fail(
        new ConnectError(`the stream was closed with HTTP/2 code ${this.stream.rstCode}`, Code.Unavailable),
      );
    });
  }

  fail(error: unknown): void {
    const held = this.letGo();
    if (held === undefined) return;
    held.reject(error);
    if (!this.stream.closed) this.stream.close(constants.NGHTTP2_CANCEL);
  }

  private end(): void {
    // A stream that is reset emits "end" too, before the error.
    if (this.held?.judged === undefined || this.stream.rstCode !== constants.NGHTTP2_NO_ERROR) return;
    const { verdict } = this.held.judged;
    const { chunks, size } = this.held;
    this.letGo()?.resolve({ verdict, bytes: joined(chunks, size) });
  }

  private letGo(): Held<Verdict> | undefined {
    const { held } = this;
    this.held = undefined;
    held?.stopListening();
    return held;
  }

  private takeHeaders(headers: AnswerHeaders): void {
    if (this.held === undefined) return;
    this.held.judged = { verdict: this.held.judge(headers) };
    this.limit(Number(headers["content-length"] ?? 0));
  }

  private takeChunk(chunk: Uint8Array): void {
    if (this.held === undefined) return;
    this.held.size += chunk.byteLength;
    this.limit(this.held.size);
    this.held.chunks.push(chunk);
  }

  private limit(bytes: number): void {
    if (this.held !== undefined && bytes > this.held.bytesMax)
      throw new ConnectError(`a response of ${bytes} bytes is too large`, Code.ResourceExhausted);
  }

  private orFail(look: () => void): void {
    try {
      look();
    } catch (error) {
      this.fail(error);
    }
  }
}

/** An error from Node about a stream or a connection, not a response. */
export function connectionError(error: unknown): ConnectError {
  return ConnectError.from(error, Code.Unavailable);
}

function joined(chunks: readonly Uint8Array[], size: number): Uint8Array {
  const [first = new Uint8Array(), ...others] = chunks;
  return others.length === 0 ? first : Buffer.concat(chunks, size);
}
