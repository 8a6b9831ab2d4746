// The start and the stop of one controller, with all that is its own: credentials, Kubernetes connections,
// and a connection to the control plane (K6).
import type { Config } from "../config/config.ts";
import { createKubeApi } from "../kube/client.ts";
import { createHttpTransport } from "../kube/http-transport.ts";
import { tracedTransport } from "../kube/request-spans.ts";
import type { Step } from "../runtime/lifecycle.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { Traced } from "../telemetry/no-tracing.ts";
import type { AgentDeps } from "./agent-deps.ts";
import { AgentError } from "./agent-error.ts";
import type { AgentView } from "./agent-view.ts";
import { loadClusterAccess } from "./cluster-access.ts";
import { loadControlPlane } from "./control-plane-access.ts";
import type { ControllerRow } from "./controllers.ts";
import { startAgentLoop } from "./loops.ts";
import type { SchedulerPlaces } from "./scheduler-part.ts";
import { holdSecret } from "./secrets.ts";

export interface ControllerParts {
  readonly view: AgentView;
  readonly metrics: Metrics;
  readonly tracing: Traced;
}

export interface ControllerStepParts extends ControllerParts {
  /** Where orders find the controller. */
  readonly scheduler: SchedulerPlaces;
}

// Long enough for an API server that is just being restarted. After that Kubernetes
// restarts krane, which shows where somebody looks.
const startTimeoutMs = 30_000;

export function controllerStep(
  row: ControllerRow,
  config: Config,
  { view, metrics, tracing, scheduler }: ControllerStepParts,
  agentDeps: AgentDeps,
): Step {
  const { name, makesPods } = row;
  const { deletion, reconcile, registry } = config;
  return {
    name: row.title,
    async start(signal) {
      const { spans } = tracing;
      const deps = { ...agentDeps, metrics, spans };
      const { endpoint, ...place } = await loadClusterAccess(config, deps, signal);
      const login = makesPods ? registry : undefined;
      const password = login && (await holdSecret(login.password, deps, signal));
      const controlPlane = await loadControlPlane(config, name, deps, signal);
      const { workers } = reconcile;
      const userAgent = `krane/${deps.build.version}`;
      const transport = createHttpTransport({ endpoint, connections: workers, userAgent }, deps);
      const settings = {
        config,
        scheduler,
        engine: { workers, deletion, startTimeoutMs },
        ...place,
        ...(login && password && { registry: { host: login.url, username: login.username, password } }),
      };
      const api = createKubeApi(tracedTransport(transport, spans));
      const controller = row.create(settings, { ...deps, api, controlPlane });
      const disconnect = async () => {
        await Promise.all([controlPlane.close(), transport.close()]);
      };
      view.add(name, controller);
      try {
        await controller.start(signal);
      } catch (cause) {
        await disconnect();
        const reason = cause instanceof Error ? cause.message : String(cause);
        throw new AgentError("start_failed", `Kubernetes at ${endpoint.server}: ${reason}`, { cause });
      }
      const upkeep = password && startAgentLoop("registry password", password.keepFresh, deps);
      return {
        async stop(hurry) {
          try {
            await upkeep?.stop(hurry);
            await controller.stop();
          } finally {
            await disconnect();
          }
        },
      };
    },
  };
}
