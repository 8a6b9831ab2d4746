// The start-up banner of the agent: its health and metrics URLs, for people at a terminal.
import { isAbsolute, relative, sep } from "node:path";
import { ownUrl } from "../server/own-url.ts";
import type { BuildInfo } from "../telemetry/metrics.ts";
import type { LoadedConfig } from "./config-source.ts";

export function renderAnnouncement(
  { config, path }: LoadedConfig,
  build: BuildInfo,
  program: string,
): string {
  const { prometheusPort } = config.observability.metrics;
  const scheme = config.tls ? "https" : "http";
  const { listenHost: host } = config;
  const metrics =
    prometheusPort > 0
      ? `${ownUrl({ scheme: "http", host, port: prometheusPort })}/metrics`
      : "off (set observability.metrics.prometheus_port)";
  return `
krane ${build.version} is running as ${config.instanceId} in ${config.region.label}

  health          ${ownUrl({ scheme, host, port: config.rpcPort })}/health/ready
  metrics         ${metrics}
  configuration   ${program} config print${path === undefined ? "" : ` --config ${path}`}

Press Ctrl-C to stop, twice to stop immediately.

`;
}

/** How to call the program from this folder: its relative path, or just `krane` if it is outside (installed). */
export function invokedAs(programPath: string | undefined, folder: string): string {
  const path = relative(folder, programPath ?? "..");
  if (path === "" || path === ".." || path.startsWith(`..${sep}`) || isAbsolute(path)) return "krane";
  return path.includes(sep) ? path : `.${sep}${path}`;
}
