// The two OTLP pipelines and their common end. This file and what it imports are the only ones that load
// OpenTelemetry; they are reached through the dynamic import in tracing.ts alone.
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
  /** The share of traces that is kept: 0 none, 1 all. A span inside another follows its parent. */
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
  // Named without its value, which may hold a password.
  for (const name of unusableEndpoints(env)) log.warn(`${name} is no http:// or https:// address, ignored`);
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
    if (!flushed) log.warn("telemetry could not be sent before the stop", { timeoutMs: shutdownMaxMs });
    // In this order: the exports that are ended now fail, and that is no news. One that waits to be tried again has
    // a timer within the SDK that nobody can reach; it comes to nothing, but keeps an event loop busy for seconds.
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

/** OTEL_RESOURCE_ATTRIBUTES can add attributes (a pod's name, a cluster); it cannot say that this is not krane. */
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

/** Whether the work ended, well or not, before the time was up. */
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
