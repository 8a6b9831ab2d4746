// SchedulerService and the controllers that it gives orders to. The port opens before they start, so they
// are put into their places one by one; orders are taken when all of krane has started.
import type { Config } from "../config/config.ts";
import { SchedulerService } from "../gen/krane/v1/scheduler_pb.ts";
import type { Health } from "../http/health.ts";
import { createDocumentFetch, defaultDocumentLimits } from "../services/document-fetch.ts";
import { type SchedulerTarget, schedulerServiceRoutes } from "../services/scheduler-service.ts";
import type { ServedService } from "../services/served-services.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { AgentDeps } from "./agent-deps.ts";
import { createAgentSecret } from "./secrets.ts";

export interface SchedulerPart {
  /** None without a token. */
  readonly services: readonly ServedService[];
  readonly places: SchedulerPlaces;
}

export type SchedulerPlaces = { -readonly [Name in keyof SchedulerTarget]?: SchedulerTarget[Name] };

export function createSchedulerPart(
  { scheduler }: Pick<Config, "scheduler">,
  health: Pick<Health, "phase">,
  deps: AgentDeps & { readonly metrics: Metrics },
): SchedulerPart {
  const places: SchedulerPlaces = {};
  if (scheduler === undefined) return { services: [], places };
  const target = (): SchedulerTarget | undefined => {
    const { deployments, sentinels } = places;
    const isComplete = health.phase === "running" && deployments !== undefined && sentinels !== undefined;
    return isComplete ? { deployments, sentinels } : undefined;
  };
  const { clock, log, metrics } = deps;
  const fetchDocument = scheduler.scrape ? createDocumentFetch(defaultDocumentLimits, deps) : undefined;
  const token = createAgentSecret(scheduler.token, deps);
  const routes = schedulerServiceRoutes(token, { clock, log, metrics, target, fetchDocument });
  return { services: [{ service: SchedulerService, routes, knowsCaller: () => true }], places };
}
