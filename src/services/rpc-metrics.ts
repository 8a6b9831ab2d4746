// Counts and times the calls that krane serves, by method and by the code that the client gets. A stream is counted when
// it ends.
import { ConnectError, type Interceptor } from "@connectrpc/connect";
import type { Clock } from "../concurrency/clock.ts";
import { codeNames } from "../control-plane/error.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { withPortHooks } from "./call-admission.ts";

export interface RpcMetricsDeps {
  readonly clock: Clock;
  readonly metrics: Pick<Metrics, "rpcServerRequests" | "rpcServerDuration">;
}

/** Must be the outermost interceptor, so that it sees the final error. */
export function createRpcMetrics({ clock, metrics }: RpcMetricsDeps): Interceptor {
  const interceptor: Interceptor = (next) => async (request) => {
    const method = request.method.name;
    const startedMs = clock.nowMs();
    const answered = (code: keyof typeof codeNames | "ok") => {
      metrics.rpcServerRequests.inc({ method, code: code === "ok" ? code : codeNames[code] });
      metrics.rpcServerDuration.observe({ method }, (clock.nowMs() - startedMs) / 1_000);
    };
    try {
      const response = await next(request);
      if (response.stream) return { ...response, message: counted(response.message, answered) };
      answered("ok");
      return response;
    } catch (error) {
      answered(ConnectError.from(error).code);
      throw error;
    }
  };
  // Rejections at the gate are not timed: they are quick, and would make the service look fast.
  return withPortHooks(interceptor, {
    onRefused: ({ method }, { code }) =>
      metrics.rpcServerRequests.inc({ method: method.name, code: codeNames[code] }),
  });
}

async function* counted<T>(
  stream: AsyncIterable<T>,
  answered: (code: keyof typeof codeNames | "ok") => void,
): AsyncIterable<T> {
  let code: keyof typeof codeNames | "ok" = "ok";
  try {
    yield* stream;
  } catch (error) {
    code = ConnectError.from(error).code;
    throw error;
  } finally {
    answered(code);
  }
}
