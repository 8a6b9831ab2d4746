// Creates connections to the configured control plane. Connections share nothing, not even the token read from its
// file (K6).
import type { Interceptor } from "@connectrpc/connect";
import { openCaFile } from "../config/ca-file.ts";
import type { Config } from "../config/config.ts";
import { createCallSpans } from "../control-plane/call-spans.ts";
import { type ControlPlane, createControlPlane } from "../control-plane/connection.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { spanCatalogue } from "../telemetry/span-catalogue.ts";
import type { Traced } from "../telemetry/spans.ts";
import type { AgentDeps } from "./agent-deps.ts";
import { createAgentSecret } from "./secrets.ts";

/** Reads the CA file. Connects on the first call. */
export async function loadControlPlane(
  { control, region }: Config,
  controller: string,
  deps: AgentDeps & Traced & { readonly metrics: Metrics },
  signal: AbortSignal,
): Promise<ControlPlane> {
  const { clock, log, metrics } = deps;
  const { caFile } = control;
  const onFailure = (error: unknown) =>
    log.warn("cannot reload the CA file; still using the previous CA", { setting: "control.ca_file", error });
  const caDeps = { readTextFile: deps.readTextFile, nowMs: () => clock.nowMs(), onFailure };
  const ca = caFile === undefined ? undefined : await openCaFile(caFile, caDeps, signal);
  const token = createAgentSecret(control.token, deps);
  const interceptors = createCallSpans(deps.spans, spanCatalogue.controlPlaneCall);
  const { network } = deps;
  const createLink =
    network && ((added: readonly Interceptor[]) => network.connectControlPlane(controller, added));
  return createControlPlane(
    { controller, baseUrl: control.url, region, token, ca },
    { clock, log, metrics, interceptors, ...(createLink && { createLink }) },
  );
}
