// Starts SecretsService with its own credentials, Kubernetes connections (K6) and vault. It starts before the port
// opens and stops after the port closes, so that no call reaches a half-started service. Without a vault it is off.
import type { ConnectRouter } from "@connectrpc/connect";
import type { Clock } from "../concurrency/clock.ts";
import type { Config } from "../config/config.ts";
import { createCallSpans } from "../control-plane/call-spans.ts";
import { createMeteredKubeApi } from "../engine/metered-kube-api.ts";
import type { KindController } from "../engine/running-controller.ts";
import { type DesiredDeployments, desiredDeployments } from "../kinds/deployment/desired-deployments.ts";
import { createKubeApi } from "../kube/client.ts";
import { tracedTransport } from "../kube/request-spans.ts";
import { pods, replicaSets } from "../kube/resources.ts";
import type { LifecycleStep } from "../runtime/lifecycle.ts";
import { createDecisionLog } from "../services/secrets-decision.ts";
import {
  createSecretsService,
  secretsConnections,
  secretsServiceRoutes,
} from "../services/secrets-service.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { spanCatalogue } from "../telemetry/span-catalogue.ts";
import type { Traced } from "../telemetry/spans.ts";
import { createVault } from "../vault/create-vault.ts";
import type { AgentDeps } from "./agent-deps.ts";
import { connectKube, loadClusterAccess } from "./cluster-access.ts";
import type { RunningControllers } from "./controllers.ts";
import type { SealPart } from "./seal-step.ts";

/** As long as the caches are not complete, there may be some. It decides only whether a token is reviewed once more. */
function areOriginalsLeft(
  deployments: Pick<KindController, "mayHaveOriginalPods" | "status"> | undefined,
): boolean {
  if (deployments === undefined || deployments.mayHaveOriginalPods()) return true;
  return deployments.status().caches.some(({ kind, synced }) => !synced && needed.has(kind));
}

const needed: ReadonlySet<string> = new Set([`${replicaSets.group}/${replicaSets.kind}`, pods.kind]);
const checkedEveryMs = 5_000;

/** Counting pods with each request of an unknown caller would cost too much. */
function everyFewSeconds(check: () => boolean, clock: Clock): () => boolean {
  let last: { readonly result: boolean; readonly atMs: number } | undefined;
  return () => {
    if (last === undefined || clock.nowMs() - last.atMs > checkedEveryMs)
      last = { result: check(), atMs: clock.nowMs() };
    return last.result;
  };
}

export interface SecretsPart {
  readonly step: LifecycleStep;
  /** Absent without a vault. */
  readonly routes: ((router: ConnectRouter) => void) | undefined;
}

export interface SecretsPartDeps {
  readonly metrics: Metrics;
  readonly tracing: Traced;
  readonly running: RunningControllers;
  readonly seal: Pick<SealPart, "current">;
}

export function createSecretsPart(
  config: Config,
  { metrics, tracing, running, seal }: SecretsPartDeps,
  agentDeps: AgentDeps,
): SecretsPart {
  const deps = { ...agentDeps, metrics };
  const { vault: vaultConfig, secrets: options } = config;
  // The port opens before the controllers start, so the desired state is looked up on each call.
  const desired: DesiredDeployments = {
    find(key) {
      const deployments = running.get("deployment");
      return deployments && desiredDeployments(deployments.desired).find(key);
    },
  };
  const mayBeOriginal = everyFewSeconds(() => areOriginalsLeft(running.get("deployment")), deps.clock);
  let service: ReturnType<typeof createSecretsService> | undefined;
  const step: LifecycleStep = {
    name: "secrets service",
    async start(signal) {
      if (vaultConfig === undefined) return undefined;
      const { endpoint } = await loadClusterAccess(config, deps, signal);
      const { spans } = tracing;
      const interceptors = createCallSpans(spans, spanCatalogue.vaultCall);
      const vault =
        deps.network?.connectVault() ?? (await createVault(vaultConfig, { ...deps, interceptors }, signal));
      if (vault === undefined) return undefined;
      const userAgent = `krane/${deps.build.version}`;
      const transport = connectKube({ endpoint, connections: secretsConnections, userAgent }, deps);
      const api = createMeteredKubeApi(createKubeApi(tracedTransport(transport, spans)), "secrets", deps);
      const audit = createDecisionLog(deps.log);
      service = createSecretsService(options, {
        ...deps,
        api,
        vault,
        desired,
        replicaSets: { watched: (key) => running.get("deployment")?.liveObject(key) },
        audit,
        seal: () => seal.current(),
        mayBeOriginal,
      });
      return {
        async stop() {
          service = undefined;
          await Promise.all([vault.close(), transport.close()]);
        },
      };
    },
  };
  return { step, routes: vaultConfig && secretsServiceRoutes(() => service, deps) };
}
