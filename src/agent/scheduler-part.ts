// SchedulerService and the controllers that it gives orders to. The port opens before they start; orders are taken
// when all of krane has started.
import type { Config } from "../config/config.ts";
import { SchedulerService } from "../gen/krane/v1/scheduler_pb.ts";
import type { Health } from "../http/health.ts";
import { createDocumentFetch, defaultDocumentLimits } from "../services/document-fetch.ts";
import { type SchedulerTarget, schedulerServiceRoutes } from "../services/scheduler-service.ts";
import type { ServedService } from "../services/served-services.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { AgentDeps } from "./agent-deps.ts";
import type { RunningControllers } from "./controllers.ts";
import { createAgentSecret } from "./secrets.ts";

/** None without a token. */
export function createSchedulerServices(
  { scheduler }: Pick<Config, "scheduler">,
  { health, running }: { readonly health: Pick<Health, "phase">; readonly running: RunningControllers },
  deps: AgentDeps & { readonly metrics: Metrics },
): readonly ServedService[] {
  if (scheduler === undefined) return [];
  const target = (): SchedulerTarget | undefined => {
    const [deployments, sentinels] = [running.get("deployment"), running.get("sentinel")];
    const isComplete = health.phase === "running" && deployments !== undefined && sentinels !== undefined;
    return isComplete ? { deployments, sentinels } : undefined;
  };
  const { clock, log, metrics } = deps;
  const fetchDocument = scheduler.scrape ? createDocumentFetch(defaultDocumentLimits, deps) : undefined;
  const token = createAgentSecret(scheduler.token, deps);
  const routes = schedulerServiceRoutes(token, { clock, log, metrics, target, fetchDocument });
  return [{ service: SchedulerService, routes, knowsCaller: () => true }];
}
