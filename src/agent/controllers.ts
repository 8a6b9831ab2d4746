// The options that all controllers of an agent share, the registry of running controllers, and the agent's own loops.
import type { Config, GatewayConfig } from "../config/config.ts";
import type { KindControllerOptions } from "../kinds/kind.ts";
import type { ControllerOf, KindName } from "../kinds/kinds.ts";
import type { RegistryCredentials } from "../model/image-reference.ts";
import type { Stoppable } from "../runtime/lifecycle.ts";
import { startLoop } from "../runtime/process-steps.ts";
import type { Log } from "../telemetry/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { AgentDeps } from "./agent-deps.ts";

export interface AgentPlace {
  /** The namespace that krane runs in, if known. */
  readonly ownNamespace?: string;
  /** See `ClusterAccess`. */
  readonly stateNamespace: string;
  readonly registry?: RegistryCredentials;
}

// Long enough for a restart of the API server. After that the agent exits and Kubernetes restarts it, so the problem
// is visible in the pod's status.
export const startTimeoutMs = 30_000;

export function controllerOptions(
  config: Config,
  { ownNamespace, stateNamespace, registry }: AgentPlace,
  log: Log,
): KindControllerOptions {
  const { deletion, drift, isolation, reconcile, region } = config;
  const { audience, endpoint } = config.secrets;
  return {
    workers: reconcile.workers,
    deletion,
    drift,
    startTimeoutMs,
    rules: {
      registries: isolation.registries,
      ...(ownNamespace !== undefined && { ownNamespace }),
      stateNamespace,
      ...(config.gateway !== undefined && { gatewayNamespaces: gatewayNamespacesOf(config.gateway) }),
    },
    region: region.label,
    reporting: { instance: config.instanceId },
    networkPolicy: isolation.networkPolicy,
    runtimeClass: isolation.runtimeClass,
    secrets: { audience, ...(endpoint !== undefined && { endpoint }) },
    ...(registry !== undefined && { registry }),
    ...(config.gateway !== undefined && { gateway: config.gateway }),
    ...scraper(config, ownNamespace, log),
  };
}

/** Tenants' pods there would be taken for proxies. */
function gatewayNamespacesOf({ namespace, proxies }: GatewayConfig): readonly string[] {
  return proxies === "cilium" ? [namespace] : [namespace, proxies.namespace];
}

/** Network policies admit krane to instances only when scraping is on. */
function scraper({ scheduler }: Config, ownNamespace: string | undefined, log: Log) {
  if (!scheduler?.scrape) return {};
  if (ownNamespace !== undefined) return { scraperNamespace: ownNamespace };
  log.warn("scheduler.scrape is on, but network policies cannot admit krane: its namespace is unknown", {
    remedy: "run krane in a pod of the cluster, or add a policy that admits it",
  });
  return {};
}

/** The controllers of an agent by kind. They are added one by one while the agent starts. */
export class RunningControllers {
  private readonly byKind = new Map<KindName, unknown>();

  set<K extends KindName>(kind: K, controller: ControllerOf<K>): void {
    this.byKind.set(kind, controller);
  }

  /** Undefined until it has been created. */
  get<K extends KindName>(kind: K): ControllerOf<K> | undefined {
    return this.byKind.get(kind) as ControllerOf<K> | undefined;
  }
}

/** Starts a background loop of the agent itself. A failure is logged and counted, and the loop restarts. */
export function startAgentLoop(
  name: string,
  loop: (signal: AbortSignal) => Promise<void>,
  deps: Pick<AgentDeps, "clock" | "random" | "log"> & { readonly metrics: Pick<Metrics, "internalPanics"> },
): Stoppable {
  const { clock, random, log, metrics } = deps;
  const onFailure = (_: string, error: unknown) => {
    metrics.internalPanics.inc({ caller: name, path: "background" });
    log.error("background loop failed; restarting it", { operation: name, error });
  };
  return startLoop(name, loop, { clock, random, onFailure });
}
