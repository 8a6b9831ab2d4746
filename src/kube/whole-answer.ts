// One request and its whole answer. Answers of single requests are small and always wanted as a whole, so
// their bytes are collected as they come; a stream in between would cost more than the request itself.
import type { Dispatcher } from "undici";
import { onAbort } from "../concurrency/abort-listener.ts";

type Headers = Parameters<NonNullable<Dispatcher.DispatchHandler["onResponseStart"]>>[2];

export interface WholeAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Buffer;
}

export interface AnswerLimits {
  readonly bytesMax: number;
  /** What to fail with when the answer is longer; the rest of it is not read. */
  tooLarge(): Error;
  /** The first byte of an answer is there: whatever happens now, the server has seen the request. */
  onBegin?(): void;
}

/** Rejects with the library's error, with `tooLarge`, or with the signal's reason. */
export function requestWhole(
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
    const stopListening = onAbort(signal, () => fail(signal.reason));
    const fail = (error: Error) => {
      stopListening();
      reject(error);
      connection?.abort(error);
    };
    dispatcher.dispatch(request, {
      onRequestStart(controller) {
        connection = controller;
        if (signal.aborted) controller.abort(signal.reason);
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
