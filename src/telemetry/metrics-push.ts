// Pushes metrics over OTLP once a minute: the same values as on the Prometheus endpoint. Counters are cumulative,
// whatever temporality the environment prefers, because the registry keeps totals.
import { type HrTime, ValueType } from "@opentelemetry/api";
import { OTLPMetricExporter } from "@opentelemetry/exporter-metrics-otlp-proto";
import type { Resource } from "@opentelemetry/resources";
import {
  AggregationTemporality,
  DataPointType,
  type MetricData,
  type MetricProducer,
  PeriodicExportingMetricReader,
  type ResourceMetrics,
} from "@opentelemetry/sdk-metrics";
import type { Clock } from "../concurrency/clock.ts";
import type { MetricSnapshot } from "./metric-registry.ts";
import type { Metrics } from "./metrics.ts";
import { type AgentOf, compression, type OnExported, watchExporter } from "./otlp-exporter.ts";

const intervalDefaultMs = 60_000;
const timeoutDefaultMs = 30_000;

export interface MetricsPushOptions {
  readonly resource: Resource;
  readonly metrics: Metrics;
  readonly agentOf: AgentOf;
  readonly onExported: OnExported;
}

export interface MetricsPushDeps {
  readonly clock: Clock;
  readonly env: Readonly<Record<string, string | undefined>>;
}

export interface MetricsPush {
  /** Pushes one last time. */
  shutdown(): Promise<void>;
}

export function startMetricsPush(options: MetricsPushOptions, deps: MetricsPushDeps): MetricsPush {
  const exporter = new OTLPMetricExporter({ compression, httpAgentOptions: options.agentOf });
  const intervalMs = milliseconds(deps.env["OTEL_METRIC_EXPORT_INTERVAL"]) ?? intervalDefaultMs;
  const timeoutMs = milliseconds(deps.env["OTEL_METRIC_EXPORT_TIMEOUT"]) ?? timeoutDefaultMs;
  const reader = new PeriodicExportingMetricReader({
    exporter: watchExporter<ResourceMetrics>(exporter, options.onExported),
    exportIntervalMillis: intervalMs,
    // The reader refuses a timeout above the interval.
    exportTimeoutMillis: Math.min(timeoutMs, intervalMs),
  });
  reader.setMetricProducer(createProducer(options, deps.clock));
  return { shutdown: () => reader.shutdown() };
}

function createProducer({ resource, metrics }: MetricsPushOptions, clock: Clock): MetricProducer {
  const startTime = hrTime(clock.wallMs());
  return {
    async collect() {
      const snapshot = await metrics.snapshot();
      const endTime = hrTime(clock.wallMs());
      const data = snapshot
        .filter(({ points }) => points.length > 0)
        .map((metric) => metricData(metric, startTime, endTime));
      return {
        resourceMetrics: { resource, scopeMetrics: [{ scope: { name: "krane" }, metrics: data }] },
        errors: [],
      };
    },
  };
}

function metricData(metric: MetricSnapshot, startTime: HrTime, endTime: HrTime): MetricData {
  const { name, help } = metric;
  const common = {
    descriptor: { name, description: help, unit: unitOf(name), valueType: ValueType.DOUBLE },
    aggregationTemporality: AggregationTemporality.CUMULATIVE,
  };
  if (metric.type === "histogram")
    return {
      ...common,
      dataPointType: DataPointType.HISTOGRAM,
      dataPoints: metric.points.map(({ labels, boundaries, counts, sum, count }) => ({
        startTime,
        endTime,
        attributes: labels,
        value: { buckets: { boundaries: [...boundaries], counts: [...counts] }, sum, count },
      })),
    };
  const dataPoints = metric.points.map(({ labels, value }) => ({
    startTime,
    endTime,
    attributes: labels,
    value,
  }));
  if (metric.type === "gauge") return { ...common, dataPointType: DataPointType.GAUGE, dataPoints };
  return { ...common, dataPointType: DataPointType.SUM, isMonotonic: true, dataPoints };
}

function unitOf(name: string): string {
  if (/_seconds(_total)?$/.test(name)) return "s";
  return name.endsWith("_bytes") ? "By" : "";
}

function hrTime(wallMs: number): HrTime {
  return [Math.trunc(wallMs / 1000), Math.round((wallMs % 1000) * 1e6)];
}

/** A positive number of milliseconds; any other value is ignored. */
function milliseconds(text: string | undefined): number | undefined {
  const value = Number(text);
  return text !== undefined && Number.isInteger(value) && value > 0 && value < 2 ** 31 ? value : undefined;
}
