// Logs one event for every call that a service handles: a stream when it ends. Ordinary ones are sampled (see Log.event).
// Calls that are rejected at the gate get none, because anyone who can reach the port could fill the log with them.
import { Code, ConnectError, type ConnectRouter, type Interceptor } from "@connectrpc/connect";
import type { Clock } from "../concurrency/clock.ts";
import { codeNames } from "../control-plane/error.ts";
import { ClusterService } from "../gen/ctrl/v1/cluster_service_pb.ts";
import type { Log } from "../telemetry/log.ts";
import { peerAddress } from "./call-admission.ts";
import { withFirstInterceptor } from "./served-call-spans.ts";

export interface CallEventsDeps {
  readonly clock: Clock;
  readonly log: Log;
}

/** The service did its work: it rejected a request, or the client left. With any other code it failed. */
const rejections: ReadonlySet<Code> = new Set([
  Code.Canceled,
  Code.InvalidArgument,
  Code.NotFound,
  Code.AlreadyExists,
  Code.PermissionDenied,
  Code.ResourceExhausted,
  Code.FailedPrecondition,
  Code.Aborted,
  Code.OutOfRange,
  Code.Unauthenticated,
]);

/** Called many times a second while somebody reads the logs of pods; only failures are told. */
const frequent = ClusterService.method.sendLogLines;

/** Wraps a router so that its services log their calls. */
export function loggedRouter(router: ConnectRouter, deps: CallEventsDeps): ConnectRouter {
  return withFirstInterceptor(router, createCallEvents(deps));
}

function createCallEvents({ clock, log }: CallEventsDeps): Interceptor {
  return (next) => async (request) => {
    const { method, contextValues } = request;
    const startedMs = clock.nowMs();
    const ended = (error?: unknown) => {
      if (error === undefined && method === frequent) return;
      const code = error === undefined ? undefined : ConnectError.from(error).code;
      log.event("request", {
        method: method.name,
        path: `/${method.parent.typeName}/${method.name}`,
        host: contextValues.get(peerAddress) || undefined,
        code: code === undefined ? "ok" : codeNames[code],
        durationMs: clock.nowMs() - startedMs,
        error: code !== undefined && !rejections.has(code) ? error : undefined,
      });
    };
    try {
      const response = await next(request);
      if (response.stream) return { ...response, message: watched(response.message, ended) };
      ended();
      return response;
    } catch (error) {
      ended(error);
      throw error;
    }
  };
}

async function* watched<T>(stream: AsyncIterable<T>, ended: (error?: unknown) => void): AsyncIterable<T> {
  let failure: unknown;
  try {
    yield* stream;
  } catch (error) {
    failure = error;
    throw error;
  } finally {
    ended(failure);
  }
}
