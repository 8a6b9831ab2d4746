// A connection to the configured control plane. Nothing of one is shared with another,
// not even the token that it has read (K6).
import { openCaFile } from "../config/ca-file.ts";
import type { Config } from "../config/config.ts";
import { createCallSpans } from "../control-plane/call-spans.ts";
import { type ControlPlane, createControlPlane } from "../control-plane/connection.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { spanCatalogue } from "../telemetry/span-catalogue.ts";
import type { Traced } from "../telemetry/spans.ts";
import type { AgentDeps } from "./agent-deps.ts";
import { createAgentSecret } from "./secrets.ts";

/** Reads the CA file; connects with the first call. */
export async function loadControlPlane(
  { control, region }: Config,
  controller: string,
  deps: AgentDeps & Traced & { readonly metrics: Metrics },
  signal: AbortSignal,
): Promise<ControlPlane> {
  const { clock, log, metrics } = deps;
  const { caFile } = control;
  const onFailure = (error: unknown) =>
    log.warn("the CA cannot be read again; the last one stays in use", { setting: "control.ca_file", error });
  const caDeps = { readTextFile: deps.readTextFile, nowMs: () => clock.nowMs(), onFailure };
  const ca = caFile === undefined ? undefined : await openCaFile(caFile, caDeps, signal);
  const token = createAgentSecret(control.token, deps);
  const interceptors = createCallSpans(deps.spans, spanCatalogue.controlPlaneCall);
  return createControlPlane(
    { controller, baseUrl: control.url, region, token, ca },
    { clock, log, metrics, interceptors },
  );
}
