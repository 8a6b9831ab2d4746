// Where to look once the agent runs: a few lines for a person at a terminal.
import type { BuildInfo } from "../telemetry/metrics.ts";
import type { LoadedConfig } from "./config-source.ts";

export function renderAnnouncement({ config, path }: LoadedConfig, build: BuildInfo): string {
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
  configuration   krane config print${path === undefined ? "" : ` --config ${path}`}

Ctrl-C stops it; a second one does so at once.

`;
}
