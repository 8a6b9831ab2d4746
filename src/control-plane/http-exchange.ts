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

export function exchange<Verdict>(
  stream: ClientHttp2Stream,
  { body, bytesMax, judge }: ExchangeOptions<Verdict>,
  signal: AbortSignal,
): Promise<Answer<Verdict>> {
  return new Promise((resolve, reject) => {
    const chunks: Uint8Array[] = [];
    let size = 0;
    let judged: { readonly verdict: Verdict } | undefined;
    let isOver = false;
    const fail = (error: unknown) => {
      if (isOver) return;
      isOver = true;
      stopListening();
      reject(error);
      if (!stream.closed) stream.close(constants.NGHTTP2_CANCEL);
    };
    const limit = (bytes: number) => {
      if (bytes > bytesMax)
        throw new ConnectError(`an answer of ${bytes} bytes is too large`, Code.ResourceExhausted);
    };
    const orFail = (look: () => void) => {
      try {
        look();
      } catch (error) {
        fail(error);
      }
    };
    const stopListening = onAbort(signal, () => fail(signal.reason));
    stream.on("response", (headers: AnswerHeaders) =>
      orFail(() => {
        judged = { verdict: judge(headers) };
        limit(Number(headers["content-length"] ?? 0));
      }),
    );
    stream.on("data", (chunk: Uint8Array) =>
      orFail(() => {
        size += chunk.byteLength;
        limit(size);
        chunks.push(chunk);
      }),
    );
    stream.on("end", () => {
      // A stream that is reset has an end too, and it comes before the error.
      if (isOver || judged === undefined || stream.rstCode !== constants.NGHTTP2_NO_ERROR) return;
      isOver = true;
      stopListening();
      resolve({ verdict: judged.verdict, bytes: joined(chunks, size) });
    });
    stream.on("error", (error) => fail(connectionError(error)));
    stream.on("close", () => {
      if (!isOver) fail(new ConnectError(`closed with HTTP/2 code ${stream.rstCode}`, Code.Unavailable));
      stream.removeAllListeners();
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
