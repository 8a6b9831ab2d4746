// Starts and stops one controller with its own credentials, Kubernetes connections and control plane connection (K6).
import type { Config } from "../config/config.ts";
import { createOrderRecords } from "../engine/kube-order-records.ts";
import { createMeteredKubeApi } from "../engine/metered-kube-api.ts";
import type { Kind } from "../kinds/kind.ts";
import type { ControllerOf, KindName } from "../kinds/kinds.ts";
import { createKubeApi } from "../kube/client.ts";
import { fencedTransport } from "../kube/fenced-transport.ts";
import { tracedTransport } from "../kube/request-spans.ts";
import type { LifecycleStep } from "../runtime/lifecycle.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { Traced } from "../telemetry/spans.ts";
import type { AgentDeps } from "./agent-deps.ts";
import { AgentError } from "./agent-error.ts";
import type { AgentView } from "./agent-view.ts";
import { connectKube, loadClusterAccess } from "./cluster-access.ts";
import { loadControlPlane } from "./control-plane-access.ts";
import { controllerOptions, type RunningControllers, startAgentLoop } from "./controllers.ts";
import type { LeasePart } from "./lease-step.ts";
import type { SealPart } from "./seal-step.ts";
import { holdSecret } from "./secrets.ts";

export interface ControllerParts {
  readonly view: AgentView;
  readonly metrics: Metrics;
  readonly tracing: Traced;
}

export interface ControllerStepParts extends ControllerParts {
  /** The controller registers itself here, for SchedulerService and SecretsService. */
  readonly running: RunningControllers;
  readonly seal: Pick<SealPart, "current">;
  readonly lease: LeasePart;
}

export function controllerStep(
  kind: Kind<KindName>,
  config: Config,
  { view, metrics, tracing, running, seal: sealPart, lease: leadership }: ControllerStepParts,
  agentDeps: AgentDeps,
): LifecycleStep {
  return {
    name: `${kind.name} controller`,
    async start(signal) {
      const { spans } = tracing;
      const deps = { ...agentDeps, metrics, spans };
      const { endpoint, ...place } = await loadClusterAccess(config, deps, signal);
      const login = kind.makesPods ? config.registry : undefined;
      const password = login && (await holdSecret(login.password, deps, signal));
      const registry = login && password && { host: login.url, username: login.username, password };
      const controlPlane = await loadControlPlane(config, kind.controller, deps, signal);
      const connections = config.reconcile.workers;
      // Audit logs show which of several agents wrote.
      const userAgent = `krane/${deps.build.version} (${config.instanceId})`;
      const transport = connectKube({ endpoint, connections, userAgent }, deps);
      const api = createKubeApi(fencedTransport(tracedTransport(transport, spans), leadership.fence));
      const metered = createMeteredKubeApi(api, kind.controller, deps);
      const recordsPlace = {
        namespace: place.stateNamespace,
        region: config.region.label,
        controller: kind.controller,
      };
      const createController = await kind.loadController();
      const options = controllerOptions(config, { ...place, ...(registry && { registry }) }, deps.log);
      const seal = sealPart.current();
      if (seal === undefined) throw new Error("the seal is loaded before the controllers start");
      const orders = config.scheduler && createOrderRecords(recordsPlace, { log: deps.log, api: metered });
      const controller = createController(options, { ...deps, api, controlPlane, seal, orders, leadership });
      const disconnect = async () => {
        await Promise.all([controlPlane.close(), transport.close()]);
      };
      running.set(kind.name, controller as ControllerOf<KindName>);
      view.add(kind.controller, controller);
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
