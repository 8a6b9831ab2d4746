// Traces and the push of metrics for `krane server`, where they are configured.
import type { Clock } from "../concurrency/clock.ts";
import { type Random, uniform } from "../concurrency/random.ts";
import type { Log } from "../telemetry/log.ts";
import type { BuildInfo, Metrics } from "../telemetry/metrics.ts";
import { createNoTracing, type Tracing } from "../telemetry/no-tracing.ts";
import { startTracing } from "../telemetry/tracing.ts";
import type { ServerConfig } from "./config/server-config.ts";

export interface ServerTracingDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly build: BuildInfo;
}

export async function startServerTracing(
  { tracing }: ServerConfig,
  metrics: Metrics,
  { clock, random, log, build }: ServerTracingDeps,
): Promise<Tracing> {
  if (tracing === undefined) return createNoTracing();
  const { sampleRate, env } = tracing;
  const service = {
    namespace: "unkey",
    name: "krane-server",
    version: build.version,
    // Several servers may share a database, and a machine.
    instanceId: `server-${Math.trunc(uniform(random, 0, 2 ** 48)).toString(36)}`,
    region: "all",
  };
  return startTracing({ sampleRate, service, metrics }, { clock, log, env });
}
