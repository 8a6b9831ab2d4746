// A connection to the configured control plane. Nothing of one is shared with another,
// not even the token that it has read (K6).
import type { Config } from "../config/config.ts";
import { type ConnectionName, type ControlPlane, createControlPlane } from "../control-plane/connection.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { AgentDeps } from "./agent-deps.ts";
import { createAgentSecret } from "./secrets.ts";

/** Reads the CA file; connects with the first call. */
export async function loadControlPlane(
  { control, region }: Config,
  controller: ConnectionName,
  deps: AgentDeps & { readonly metrics: Metrics },
  signal: AbortSignal,
): Promise<ControlPlane> {
  const { clock, log, metrics } = deps;
  const { caFile } = control;
  const ca = caFile === undefined ? undefined : await deps.readTextFile(caFile, signal);
  const token = createAgentSecret(control.token, deps);
  return createControlPlane({ controller, baseUrl: control.url, region, token, ca }, { clock, log, metrics });
}
