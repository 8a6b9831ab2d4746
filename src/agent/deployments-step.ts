// The deployment controller with all that is its own: credentials, Kubernetes connections,
// and a connection to the control plane (K6).
import type { Config } from "../config/config.ts";
import {
  createDeploymentController,
  type DeploymentControllerOptions,
} from "../controllers/deployment-controller.ts";
import { createKubeApi } from "../kube/client.ts";
import { createHttpTransport } from "../kube/http-transport.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { AgentDeps } from "./agent-deps.ts";
import { AgentError } from "./agent-error.ts";
import type { AgentView } from "./agent-view.ts";
import { loadClusterAccess } from "./cluster-access.ts";
import { loadControlPlane } from "./control-plane-access.ts";
import type { Step } from "./lifecycle.ts";
import { startLoop } from "./loops.ts";
import { type HeldSecret, holdSecret } from "./secrets.ts";

export interface ControllerParts {
  readonly view: AgentView;
  readonly metrics: Metrics;
}

// Long enough for an API server that is just being restarted. After that Kubernetes
// restarts krane, which shows where somebody looks.
const startTimeoutMs = 30_000;

export function deploymentsStep(
  config: Config,
  { view, metrics }: ControllerParts,
  agentDeps: AgentDeps,
): Step {
  const deps = { ...agentDeps, metrics };
  const name = "deployments";
  return {
    name: "deployment controller",
    async start(signal) {
      const { endpoint, ownNamespace } = await loadClusterAccess(config, deps, signal);
      const password = config.registry && (await holdSecret(config.registry.password, deps, signal));
      const options = controllerOptions(config, ownNamespace, password);
      const controlPlane = await loadControlPlane(config, name, deps, signal);
      const userAgent = `krane/${deps.build.version}`;
      const transport = createHttpTransport({ endpoint, connections: options.workers, userAgent }, deps);
      const api = createKubeApi(transport);
      const controller = createDeploymentController(options, { ...deps, api, controlPlane });
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
      const upkeep = password && startLoop("registry password", password.keepFresh, deps);
      return {
        async stop() {
          try {
            await upkeep?.stop();
            await controller.stop();
          } finally {
            await disconnect();
          }
        },
      };
    },
  };
}

function controllerOptions(
  config: Config,
  ownNamespace: string | undefined,
  password: HeldSecret | undefined,
): DeploymentControllerOptions {
  const { registry, secrets, isolation, reconcile, deletion } = config;
  const { audience, endpoint } = secrets;
  return {
    workers: reconcile.workers,
    deletion,
    startTimeoutMs,
    networkPolicy: isolation.networkPolicy,
    rules: { registries: isolation.registries, ...(ownNamespace !== undefined && { ownNamespace }) },
    settings: {
      secrets: { audience, ...(endpoint !== undefined && { endpoint }) },
      ...(registry &&
        password && { registry: { host: registry.url, username: registry.username, password } }),
    },
  };
}
