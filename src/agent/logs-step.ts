// Lets people read the logs of krane's pods through the control plane: with its own credentials and connections, so that
// nobody who reads logs slows down a controller (K6). Only the leader serves them, as it is the agent that the control plane
// knows.
import type { Config } from "../config/config.ts";
import { createMeteredKubeApi } from "../engine/metered-kube-api.ts";
import { inEachTerm } from "../engine/take-over.ts";
import { type DesiredDeployments, desiredDeployments } from "../kinds/deployment/desired-deployments.ts";
import { createKubeApi } from "../kube/client.ts";
import { createHttpTransport } from "../kube/http-transport.ts";
import type { Leadership } from "../kube/leadership.ts";
import type { LifecycleStep } from "../runtime/lifecycle.ts";
import { KnownReplicaSets } from "../services/known-replica-sets.ts";
import type { AgentDeps } from "./agent-deps.ts";
import { loadClusterAccess } from "./cluster-access.ts";
import { loadControlPlane } from "./control-plane-access.ts";
import { startAgentLoop } from "./controllers.ts";
import { serveLogRequests } from "./logs/log-requests.ts";
import type { SecretsPartDeps } from "./secrets-step.ts";

// For lists and proofs; each log that is read has a connection of its own besides.
const connections = 8;
// A program may print nothing for hours. A connection that is dead is noticed when it is opened again.
const silenceMs = 10 * 60_000;

export function logsStep(
  config: Config,
  { metrics, tracing, running, seal, lease }: SecretsPartDeps & { readonly lease: Leadership },
  agentDeps: AgentDeps,
): LifecycleStep {
  return {
    name: "logs",
    async start(signal) {
      const deps = { ...agentDeps, metrics, spans: tracing.spans };
      const { endpoint } = await loadClusterAccess(config, deps, signal);
      const plane = await loadControlPlane(config, "logs", deps, signal);
      const userAgent = `krane/${deps.build.version}`;
      const transport = createHttpTransport(
        { endpoint, connections, userAgent, watchSilenceMs: silenceMs },
        deps,
      );
      const api = createMeteredKubeApi(createKubeApi(transport), "logs", deps);
      const deployments = () => running.get("deployment");
      const desired: DesiredDeployments = {
        find(key) {
          const controller = deployments();
          return controller && desiredDeployments(controller.desired).find(key);
        },
      };
      const known = new KnownReplicaSets({ watched: (key) => deployments()?.liveObject(key) });
      const { instanceId } = config;
      const parts = {
        ...{ ...deps, api, transport, desired, known, instanceId },
        seal: () => seal.current(),
        watch: (inner: AbortSignal) => plane.watchLogRequests(instanceId, inner),
        send: plane.sendLogLines,
      };
      const loop = startAgentLoop(
        "logs",
        (until) => inEachTerm(lease, (_, term) => serveLogRequests(parts, term), until),
        deps,
      );
      return {
        async stop(hurry) {
          await loop.stop(hurry);
          await Promise.all([plane.close(), transport.close()]);
        },
      };
    },
  };
}
