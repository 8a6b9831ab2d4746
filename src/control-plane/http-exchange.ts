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
interface OpenExchange<Verdict> {
  readonly resolve: (answer: Answer<Verdict>) => void;
  readonly reject: (reason: unknown) => void;
  readonly chunks: Uint8Array[];
  size: number;
  judged: { readonly verdict: Verdict } | undefined;
}

export function exchange<Verdict>(
  stream: ClientHttp2Stream,
  { body, bytesMax, judge }: ExchangeOptions<Verdict>,
  signal: AbortSignal,
): Promise<Answer<Verdict>> {
  return new Promise((resolve, reject) => {
    let open: OpenExchange<Verdict> | undefined = { resolve, reject, chunks: [], size: 0, judged: undefined };
    const close = () => {
      const closed = open;
      open = undefined;
      stopListening();
      return closed;
    };
    const fail = (error: unknown) => {
      if (open === undefined) return;
      close()?.reject(error);
      if (!stream.closed) stream.close(constants.NGHTTP2_CANCEL);
    };
    const stopListening = onAbort(signal, () => fail(signal.reason));
    const limit = (bytes: number) => {
      if (bytes > bytesMax)
        throw new ConnectError(`an answer of ${bytes} bytes is too large`, Code.ResourceExhausted);
    };
    const look = (at: (exchange: OpenExchange<Verdict>) => void) => {
      try {
        if (open !== undefined) at(open);
      } catch (error) {
        fail(error);
      }
    };
    stream.on("response", (headers: AnswerHeaders) =>
      look((exchange) => {
        exchange.judged = { verdict: judge(headers) };
        limit(Number(headers["content-length"] ?? 0));
      }),
    );
    stream.on("data", (chunk: Uint8Array) =>
      look((exchange) => {
        exchange.size += chunk.byteLength;
        limit(exchange.size);
        exchange.chunks.push(chunk);
      }),
    );
    stream.on("end", () => {
      // A stream that is reset has an end too, and it comes before the error.
      if (open?.judged === undefined || stream.rstCode !== constants.NGHTTP2_NO_ERROR) return;
      const { verdict } = open.judged;
      const { chunks, size } = open;
      close()?.resolve({ verdict, bytes: joined(chunks, size) });
    });
    stream.on("error", (error) => fail(connectionError(error)));
    stream.on("close", () => {
      if (open !== undefined)
        fail(new ConnectError(`closed with HTTP/2 code ${stream.rstCode}`, Code.Unavailable));
    });
    if (signal.aborted) fail(signal.reason);
    else stream.end(body);
  });
}

/** An error of Node's about a stream or a connection: nobody's answer. */
export function connectionError(error: unknown): ConnectError {
  return ConnectError.from(error, Code.Unavailable);
}

function joined(chunks: readonly Uint8Array[], size: number): Uint8Array {
  const [first = new Uint8Array(), ...others] = chunks;
  return others.length === 0 ? first : Buffer.concat(chunks, size);
}
