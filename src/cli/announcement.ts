// Where to look once the agent runs: a few lines for a person at a terminal.
import { isAbsolute, relative, sep } from "node:path";
import type { BuildInfo } from "../telemetry/metrics.ts";
import type { LoadedConfig } from "./config-source.ts";

export function renderAnnouncement(
  { config, path }: LoadedConfig,
  build: BuildInfo,
  program: string,
): string {
  const { prometheusPort } = config.observability.metrics;
  const scheme = config.tls ? "https" : "http";
  const metrics =
    prometheusPort > 0
      ? `http://localhost:${prometheusPort}/metrics`
      : "off (set observability.metrics.prometheus_port)";
  return `
krane ${build.version} runs as ${config.instanceId} in ${config.region.label}

  health          ${scheme}://localhost:${config.rpcPort}/health/ready
  metrics         ${metrics}
  configuration   ${program} config print${path === undefined ? "" : ` --config ${path}`}

Ctrl-C stops it; a second one does so at once.

`;
}

/** How a person calls the program from this folder; by its name where it lies outside, as when it is installed. */
export function invokedAs(programPath: string | undefined, folder: string): string {
  const path = relative(folder, programPath ?? "..");
  if (path === "" || path === ".." || path.startsWith(`..${sep}`) || isAbsolute(path)) return "krane";
  return path.includes(sep) ? path : `.${sep}${path}`;
}
