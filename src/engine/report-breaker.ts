// The circuit breaker of one controller's reports, with its metrics.
import { CircuitBreaker } from "../concurrency/circuit-breaker.ts";
import type { Clock } from "../concurrency/clock.ts";
import type { Log } from "../telemetry/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { speaksOfHealth } from "./classify.ts";

export interface ReportBreakerDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Pick<Metrics, "circuitBreakerRequests" | "circuitBreakerErrors">;
}

export function createReportBreaker(
  controller: string,
  { clock, metrics, log }: ReportBreakerDeps,
): CircuitBreaker {
  // The names that dashboards of the original know: deployment_state_update, sentinel_state_update.
  const service = `${controller.replace(/s$/, "")}_state_update`;
  return new CircuitBreaker(
    { name: service },
    {
      clock,
      countsAsFailure: speaksOfHealth,
      observer: {
        onRequest: (action) => metrics.circuitBreakerRequests.inc({ service, action }),
        onFailure: (action) => metrics.circuitBreakerErrors.inc({ service, action }),
        onTransition: (previousState, state) =>
          log.warn("the circuit breaker of the reports changed", { controller, previousState, state }),
      },
    },
  );
}
