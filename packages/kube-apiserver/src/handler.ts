// The API server without a socket: requests are direct calls. Bodies are copied on the way in and out, so that
// neither side sees the other's later changes; nothing is turned into text.
import { type ApiServer, administrator } from "./api-server.ts";
import { onAbort } from "./clock.ts";
import { copyJson } from "./json.ts";
import type { ApiRequest, ServerAnswer, ServerRequest, StreamAnswer } from "./request.ts";
import type { User } from "./resource.ts";

export interface HandlerOptions {
  /** Default: the administrator. */
  readonly user?: User;
  /** Names the field manager of requests that do not. Default "unknown", as over HTTP without a user agent. */
  readonly userAgent?: string;
}

/**
 * Resolves for every status; rejects only with the reason of the signal. A watch answers a stream, which ends when
 * it is closed, when the iteration is left, or with the signal.
 */
export type ApiHandler = (request: ApiRequest, signal: AbortSignal) => Promise<ServerAnswer>;

/** A way in for one client of this process. */
export function createHandler(server: ApiServer, options: HandlerOptions = {}): ApiHandler {
  return async (request, signal) => {
    signal.throwIfAborted();
    const known: ServerRequest = {
      ...request,
      ...(request.body === undefined ? {} : { body: copyJson(request.body) }),
      user: options.user ?? administrator,
      ...(options.userAgent === undefined ? {} : { userAgent: options.userAgent }),
    };
    const outcome = server.faults.outcomeOf(known);
    if (outcome === "hang") return hang(signal);
    const answer = outcome ?? server.handle(known);
    if (answer.kind === "whole") return { ...answer, body: copyJson(answer.body) };
    return { ...answer, values: follow(answer, signal) };
  };
}

function hang(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    onAbort(signal, () => reject(signal.reason));
  });
}

/** Copies the events, and closes the watch with the signal even if nobody reads it. */
function follow(answer: StreamAnswer, signal: AbortSignal): AsyncIterable<unknown> {
  const stopListening = onAbort(signal, () => answer.close());
  if (signal.aborted) answer.close();
  return (async function* () {
    try {
      for await (const value of answer.values) {
        signal.throwIfAborted();
        yield copyJson(value);
      }
      signal.throwIfAborted();
    } finally {
      stopListening();
      answer.close();
    }
  })();
}
