// What all controllers can be told. The defaults are those of the settings with the same names, so that a
// controller behaves within another program as it does in an agent.

import type { DeletionConfig } from "../config/config.ts";
import type { Setting } from "../config/setting.ts";
import { settings } from "../config/settings.ts";
import type { ControlPlane } from "../control-plane/connection.ts";
import type { KubeApi } from "../kube/api.ts";
import { createMetrics, type Metrics } from "../telemetry/metrics.ts";
import { build, completeSurroundings, type Surroundings } from "./surroundings.ts";

export interface EngineOptions {
  /** Keys that are worked on at the same time. Default 32. */
  readonly workers?: number;
  /** When an object that the control plane does not know may go; see `[deletion]` of the configuration. */
  readonly deletion?: Partial<DeletionConfig>;
  /** How long start() waits for the watches. Default 60 s. */
  readonly startTimeoutMs?: number;
}

export interface ControllerDeps extends Surroundings {
  /** See `connectKubernetes`. */
  readonly api: KubeApi;
  /** See `connectControlPlane`. */
  readonly controlPlane: ControlPlane;
  /** Default: metrics that nobody reads. */
  readonly metrics?: Metrics;
}

export const defaultWorkers = defaultOf(settings.reconcileWorkers);

export function engineOptions({ workers = defaultWorkers, deletion, startTimeoutMs }: EngineOptions) {
  return {
    workers,
    deletion: { ...defaultDeletion(), ...deletion },
    ...(startTimeoutMs !== undefined && { startTimeoutMs }),
  };
}

export function engineDeps(deps: ControllerDeps) {
  const { api, controlPlane, metrics = createMetrics(build) } = deps;
  return { api, controlPlane, metrics, ...completeSurroundings(deps) };
}

function defaultDeletion(): DeletionConfig {
  return {
    mode: defaultOf(settings.deletionMode),
    confirmations: defaultOf(settings.deletionConfirmations),
    minimumAgeMs: defaultOf(settings.deletionMinimumAge),
    budgetObjects: defaultOf(settings.deletionBudgetObjects),
    budgetFraction: defaultOf(settings.deletionBudgetFraction),
    budgetWindowMs: defaultOf(settings.deletionBudgetWindow),
  };
}

export function defaultOf<T>({ path, fallback }: Setting<T>): T {
  if (fallback === undefined) throw new TypeError(`${path} has no default`);
  return fallback.value({ hasSection: () => false, randomId: () => "" });
}
