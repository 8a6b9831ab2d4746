// Calls the API server without a socket. Bodies are copied on the way in and out, so that neither side sees later changes
// of the other; nothing is serialized.
import { type ApiServer, administrator } from "./api-server.ts";
import { onAbort } from "./clock.ts";
import { copyJson } from "./json.ts";
import type { ApiRequest, ApiResponse, ServerRequest, StreamResponse } from "./request.ts";
import type { User } from "./resource.ts";

export interface HandlerOptions {
  /** Default: the administrator. */
  readonly user?: User;
  /** The field manager of requests that do not set one. Default "unknown", as over HTTP without a user agent. */
  readonly userAgent?: string;
}

/**
 * Resolves for every status. Rejects only with the signal's reason. A watch returns a stream, which ends when it is
 * closed, when the iteration stops, or when the signal aborts.
 */
export type ApiHandler = (request: ApiRequest, signal: AbortSignal) => Promise<ApiResponse>;

/** Creates the handler of one client in this process. */
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
    const response = outcome ?? server.handle(known);
    if (response.kind === "whole") return { ...response, body: copyJson(response.body) };
    return { ...response, values: follow(response, signal) };
  };
}

function hang(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    onAbort(signal, () => reject(signal.reason));
  });
}

/** Copies the events, and closes the watch when the signal aborts, even if it is not being read. */
function follow(response: StreamResponse, signal: AbortSignal): AsyncIterable<unknown> {
  const stopListening = onAbort(signal, () => response.close());
  if (signal.aborted) response.close();
  return (async function* () {
    try {
      for await (const value of response.values) {
        signal.throwIfAborted();
        yield copyJson(value);
      }
      signal.throwIfAborted();
    } finally {
      stopListening();
      response.close();
    }
  })();
}
