// Starts and stops the OTLP export of traces and metrics. Only this file and its imports load OpenTelemetry, and they are
// loaded through a dynamic import, so that a process without tracing does not pay for it.
import {
  detectResources,
  envDetector,
  type Resource,
  resourceFromAttributes,
} from "@opentelemetry/resources";
import type { Clock } from "../concurrency/clock.ts";
import type { Log } from "./log.ts";
import type { Metrics } from "./metrics.ts";
import { startMetricsPush } from "./metrics-push.ts";
import { createSpans } from "./otel-spans.ts";
import { createExportWatch, createOtlpAgents, unusableEndpoints } from "./otlp-exporter.ts";
import type { Tracing } from "./spans.ts";

// Long enough for one round trip to a healthy collector, and far below the 30 s that the whole agent has to stop.
const shutdownMaxMs = 3_000;

export interface OtlpOptions {
  readonly tracesOn: boolean;
  /** The share of traces that is sampled: 0 none, 1 all. A child span follows its parent. */
  readonly sampleRate: number;
  readonly service: {
    readonly namespace: string;
    readonly name: string;
    readonly version: string;
    readonly instanceId: string;
    readonly region: string;
  };
  readonly metrics: Metrics | undefined;
}

export interface OtlpDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly env: Readonly<Record<string, string | undefined>>;
}

export function startOtlp(options: OtlpOptions, deps: OtlpDeps): Tracing {
  const { clock, env, log } = deps;
  // Without the value, which may contain a password.
  for (const name of unusableEndpoints(env))
    log.warn(`${name} is not an http:// or https:// address; ignoring it`);
  const resource = resourceOf(options.service);
  const agents = createOtlpAgents(env);
  const watch = createExportWatch(log, options.metrics?.telemetryFailures);

  const traces =
    options.tracesOn && options.sampleRate > 0
      ? createSpans({
          resource,
          sampleRate: options.sampleRate,
          agentOf: agents.forSignal("TRACES"),
          onExported: watch.forSignal("traces"),
        })
      : undefined;
  const push = options.metrics
    ? startMetricsPush(
        {
          resource,
          metrics: options.metrics,
          agentOf: agents.forSignal("METRICS"),
          onExported: watch.forSignal("metrics"),
        },
        { clock, env },
      )
    : undefined;

  async function stop(): Promise<void> {
    const flushed = await settledWithin(clock, shutdownMaxMs, [traces?.shutdown(), push?.shutdown()]);
    if (!flushed) log.warn("telemetry was not flushed before shutdown", { timeoutMs: shutdownMaxMs });
    // In this order, because the exports that are cut off now fail, and that need not be logged. A waiting retry has a
    // timer inside the SDK that cannot be cancelled; it does nothing, but keeps the event loop alive for seconds.
    watch.stop();
    agents.destroy();
  }
  let stopped: Promise<void> | undefined;
  return {
    spans: traces?.spans,
    shutdown() {
      stopped ??= stop();
      return stopped;
    },
  };
}

/** OTEL_RESOURCE_ATTRIBUTES can add attributes (a pod's name, a cluster), but not override these. */
function resourceOf(service: OtlpOptions["service"]): Resource {
  return detectResources({ detectors: [envDetector] }).merge(
    resourceFromAttributes({
      "service.namespace": service.namespace,
      "service.name": service.name,
      "service.version": service.version,
      "service.instance.id": service.instanceId,
      "cloud.region": service.region,
    }),
  );
}

/** Whether the work settled, successfully or not, within the time. */
function settledWithin(
  clock: Clock,
  maxMs: number,
  work: readonly (Promise<void> | undefined)[],
): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = clock.setTimer(maxMs, () => resolve(false));
    void Promise.allSettled(work).then(() => {
      timer.cancel();
      resolve(true);
    });
  });
}
