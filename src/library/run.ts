// A whole agent within another program.
import type { AgentDeps } from "../agent/agent-deps.ts";
import { run as runAgent } from "../agent/run.ts";
import type { Config } from "../config/config.ts";
import { build, completeAccess, completeHostDeps } from "./host-deps.ts";

/** All of it has a default. */
export type RunDeps = Partial<AgentDeps>;

/**
 * Runs until the signal aborts or something fails, and resolves after a clean stop. Rejects with the error of
 * a start that failed, or with an AggregateError of every cause when a task or a clean-up failed.
 *
 * Credentials of the cluster are looked for where the configuration says; in a pod or by KUBECONFIG only if
 * `deps.env` has the variables that say so.
 */
export function run(config: Config, deps: RunDeps, signal: AbortSignal): Promise<void> {
  const { env = {} } = deps;
  const complete = { env, build, ...completeAccess(env), ...deps, ...completeHostDeps(deps) };
  return runAgent(config, complete, signal);
}
