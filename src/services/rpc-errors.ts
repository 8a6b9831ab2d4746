// What becomes of a failure: a coded error goes to the client as it is, one that the
// service knows gets its code, and everything else is logged here and told to nobody,
// because the text of a database error is not for clients.
import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import type { Log } from "../telemetry/log.ts";
import { type AnswerTo, withPortDuties } from "./call-admission.ts";

export interface RpcErrorsDeps {
  readonly log: Log;
  /** The answer to an error that the service expects; undefined for all others. */
  explain?(error: unknown): ConnectError | undefined;
}

export function createErrorInterceptor(deps: RpcErrorsDeps): Interceptor {
  const answerTo: AnswerTo = (error, { method, signal }) => {
    // Whatever the work made of its abort, the client is gone or out of time.
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
      return { ...response, message: answered(response.message, (error) => answerTo(error, request)) };
    } catch (error) {
      throw answerTo(error, request);
    }
  };
  return withPortDuties(interceptor, { answerTo });
}

async function* answered<T>(stream: AsyncIterable<T>, answerTo: (error: unknown) => unknown) {
  try {
    yield* stream;
  } catch (error) {
    throw answerTo(error);
  }
}
