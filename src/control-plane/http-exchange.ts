// One request and its whole answer on a stream of an HTTP/2 connection.
//
// - The answer has a limit, which is checked before memory is taken.
// - An exchange that is aborted, or whose answer is refused, is reset at the server, which can then stop working.
// - Node keeps the object of an ended stream until the next large collection of garbage. It lets go of all that
//   hangs on it here, or thousands of small answers would be enough to bring that collection about.
import { type ClientHttp2Stream, constants, type IncomingHttpHeaders } from "node:http2";
import { Code, ConnectError } from "@connectrpc/connect";
import { onAbort } from "../concurrency/abort-listener.ts";

export type AnswerHeaders = IncomingHttpHeaders & { readonly ":status"?: number };

export interface ExchangeOptions<Verdict> {
  readonly body: Uint8Array;
  /** The largest answer. */
  readonly bytesMax: number;
  /** Looks at the headers before the body is read. What it throws ends the exchange. */
  judge(headers: AnswerHeaders): Verdict;
}

export interface Answer<Verdict> {
  readonly verdict: Verdict;
  readonly bytes: Uint8Array;
}

/** All that an exchange holds, in one place that can be let go of. */
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

// A class, because a function made within `exchange` would keep everything there alive, and not only what it uses.
class OpenExchange<Verdict> {
  private readonly stream: ClientHttp2Stream;
  /** Undefined from its end on. */
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
      this.fail(new ConnectError(`closed with HTTP/2 code ${this.stream.rstCode}`, Code.Unavailable));
    });
  }

  fail(error: unknown): void {
    const held = this.letGo();
    if (held === undefined) return;
    held.reject(error);
    if (!this.stream.closed) this.stream.close(constants.NGHTTP2_CANCEL);
  }

  private end(): void {
    // A stream that is reset has an end too, and it comes before the error.
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
      throw new ConnectError(`an answer of ${bytes} bytes is too large`, Code.ResourceExhausted);
  }

  private orFail(look: () => void): void {
    try {
      look();
    } catch (error) {
      this.fail(error);
    }
  }
}

/** An error of Node's about a stream or a connection: nobody's answer. */
export function connectionError(error: unknown): ConnectError {
  return ConnectError.from(error, Code.Unavailable);
}

function joined(chunks: readonly Uint8Array[], size: number): Uint8Array {
  const [first = new Uint8Array(), ...others] = chunks;
  return others.length === 0 ? first : Buffer.concat(chunks, size);
}
