// Maps errors to the ones that clients get. A ConnectError passes unchanged, an error that the service expects gets its
// code, and everything else is logged and becomes `internal`, because clients must not see the text of, for example, a
// database error.
import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import type { Log } from "../telemetry/log.ts";
import { type MapError, withPortHooks } from "./call-admission.ts";

export interface RpcErrorsDeps {
  readonly log: Log;
  /** The client's error for one that the service expects; undefined for all others. */
  explain?(error: unknown): ConnectError | undefined;
}

export function createErrorInterceptor(deps: RpcErrorsDeps): Interceptor {
  const mapError: MapError = (error, { method, signal }) => {
    // After an abort the client is gone or out of time, so the error does not matter.
    if (signal.aborted || error instanceof ConnectError) return error;
    const explained = deps.explain?.(error);
    if (explained !== undefined) return explained;
    deps.log.error("call failed", { method: method.name, error });
    return new ConnectError("internal error", Code.Internal);
  };
  const interceptor: Interceptor = (next) => async (request) => {
    try {
      const response = await next(request);
      if (!response.stream) return response;
      return {
        ...response,
        message: withMappedErrors(response.message, (error) => mapError(error, request)),
      };
    } catch (error) {
      throw mapError(error, request);
    }
  };
  return withPortHooks(interceptor, { mapError });
}

async function* withMappedErrors<T>(stream: AsyncIterable<T>, mapError: (error: unknown) => unknown) {
  try {
    yield* stream;
  } catch (error) {
    throw mapError(error);
  }
}
