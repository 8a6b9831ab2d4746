// Counts and times the calls that krane answers, by method and by the code that the
// client hears. A stream counts when it ends.
import { ConnectError, type Interceptor } from "@connectrpc/connect";
import type { Clock } from "../concurrency/clock.ts";
import { codeNames } from "../control-plane/error.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { withPortDuties } from "./call-admission.ts";

export interface RpcMetricsDeps {
  readonly clock: Clock;
  readonly metrics: Pick<Metrics, "rpcServerRequests" | "rpcServerDuration">;
}

/** Has to be the outermost interceptor, so that it sees the error that goes out. */
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
  // Not timed: a refusal at the gate takes no time, and would make the service look fast.
  return withPortDuties(interceptor, {
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
