// Runs a whole agent within another program.
import type { AgentDeps } from "../agent/agent-deps.ts";
import { run as runAgent } from "../agent/run.ts";
import type { Config } from "../config/config.ts";
import { build, completeAccess, completeHostDeps } from "./host-deps.ts";

/** Every dependency has a default. */
export type RunDeps = Partial<AgentDeps>;

/**
 * Runs until the signal aborts or something fails, and resolves after a clean stop. Rejects with the error of a failed
 * start, or with an AggregateError of all causes when a task or a clean-up failed.
 *
 * The cluster's credentials come from the kubeconfig in the configuration. The pod's service account and KUBECONFIG are
 * used only if `deps.env` has their variables.
 */
export function run(config: Config, deps: RunDeps, signal: AbortSignal): Promise<void> {
  const { env = {} } = deps;
  const complete = { env, build, ...completeAccess(env), ...deps, ...completeHostDeps(deps) };
  return runAgent(config, complete, signal);
}
