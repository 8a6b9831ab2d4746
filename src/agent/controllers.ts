// What an agent tells the controllers of all kinds, and where others find them once they run.
import type { Config } from "../config/config.ts";
import type { KindControllerOptions } from "../kinds/kind.ts";
import type { ControllerOf, KindName } from "../kinds/kinds.ts";
import type { RegistryCredentials } from "../model/image-reference.ts";
import type { Stoppable } from "../runtime/lifecycle.ts";
import { startLoop } from "../runtime/process-steps.ts";
import type { Log } from "../telemetry/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { AgentDeps } from "./agent-deps.ts";

export interface AgentPlace {
  /** The namespace that krane runs in, where it is known. */
  readonly ownNamespace?: string;
  readonly registry?: RegistryCredentials;
}

// Long enough for an API server that is just being restarted. After that Kubernetes
// restarts krane, which shows where somebody looks.
const startTimeoutMs = 30_000;

export function controllerOptions(
  config: Config,
  { ownNamespace, registry }: AgentPlace,
  log: Log,
): KindControllerOptions {
  const { deletion, isolation, reconcile, region, scheduler } = config;
  const { audience, endpoint } = config.secrets;
  return {
    workers: reconcile.workers,
    deletion,
    restoresOrders: scheduler !== undefined,
    startTimeoutMs,
    rules: { registries: isolation.registries, ...(ownNamespace !== undefined && { ownNamespace }) },
    region: region.label,
    networkPolicy: isolation.networkPolicy,
    secrets: { audience, ...(endpoint !== undefined && { endpoint }) },
    ...(registry !== undefined && { registry }),
    ...scraper(config, ownNamespace, log),
  };
}

/** Instances let krane in only where it may ask them for something. */
function scraper({ scheduler }: Config, ownNamespace: string | undefined, log: Log) {
  if (!scheduler?.scrape) return {};
  if (ownNamespace !== undefined) return { scraperNamespace: ownNamespace };
  log.warn("scheduler.scrape is on, but network policies cannot let krane in: its namespace is not known", {
    remedy: "run krane in a pod of the cluster, or let it in by a policy of your own",
  });
  return {};
}

/** The controllers of an agent by kind. They are put here one by one while it starts. */
export class RunningControllers {
  private readonly byKind = new Map<KindName, unknown>();

  set<K extends KindName>(kind: K, controller: ControllerOf<K>): void {
    this.byKind.set(kind, controller);
  }

  /** Undefined while it has not been made. */
  get<K extends KindName>(kind: K): ControllerOf<K> | undefined {
    return this.byKind.get(kind) as ControllerOf<K> | undefined;
  }
}

// Loops of the agent itself. A failure is counted as well as logged.

export function startAgentLoop(
  name: string,
  loop: (signal: AbortSignal) => Promise<void>,
  deps: Pick<AgentDeps, "clock" | "random" | "log"> & { readonly metrics: Pick<Metrics, "internalPanics"> },
): Stoppable {
  const { clock, random, log, metrics } = deps;
  const onFailure = (_: string, error: unknown) => {
    metrics.internalPanics.inc({ caller: name, path: "background" });
    log.error("a loop failed and is started again", { operation: name, error });
  };
  return startLoop(name, loop, { clock, random, onFailure });
}
