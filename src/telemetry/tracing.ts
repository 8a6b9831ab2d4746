// Tracing, and the push of metrics, over OTLP. Off is the normal case, and then none of OpenTelemetry's SDK is
// loaded, which saves about 10 MB. Nothing is registered globally; who makes spans
// is handed a Spans, or none where none would be kept. A collector that is down, slow or silent delays nothing but shutdown(), by a fixed time.
import type { Metrics } from "./metrics.ts";
import { createNoTracing, type Tracing } from "./no-tracing.ts";
import type { OtlpDeps, OtlpOptions } from "./otlp.ts";

export interface TracingOptions extends Pick<OtlpOptions, "sampleRate" | "service"> {
  /** Pushed once a minute where given. */
  readonly metrics?: Metrics;
}

export interface TracingDeps extends OtlpDeps {
  /** The environment. Endpoints and headers are read by the exporters themselves, from that of the process. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Call it where OTLP is configured. The standard variables can still switch off traces, metrics or both. */
export async function startTracing(options: TracingOptions, deps: TracingDeps): Promise<Tracing> {
  const { env } = deps;
  const tracesOn = env["OTEL_TRACES_EXPORTER"] !== "none";
  const metrics = env["OTEL_METRICS_EXPORTER"] === "none" ? undefined : options.metrics;
  const disabled = env["OTEL_SDK_DISABLED"]?.toLowerCase() === "true";
  if (disabled || (!tracesOn && !metrics)) return createNoTracing();
  const { startOtlp } = await import("./otlp.ts");
  return startOtlp({ ...options, tracesOn, metrics }, deps);
}
