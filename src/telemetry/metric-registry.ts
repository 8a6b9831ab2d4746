// Creates counters, gauges and histograms from definitions; the only file that imports the metrics library. Each registry
// is private, so that two agents in one process (as in tests) do not share metrics.
import {
  Counter as PromCounter,
  Gauge as PromGauge,
  Histogram as PromHistogram,
  Registry,
} from "prom-client";
import type { LabelDefinitions, LabelsOf, MetricDefinition } from "./metric-catalogue.ts";

// A series is kept for as long as the process lives (K10). Above this many, new ones go into a single series whose labels
// are all "other", so that a bug in a writer costs detail and not memory.
const seriesMax = 1000;

export interface Counter<L extends LabelDefinitions> {
  inc(labels: LabelsOf<L>, by?: number): void;
}

export interface Gauge<L extends LabelDefinitions> {
  set(labels: LabelsOf<L>, value: number): void;
}

export interface Histogram<L extends LabelDefinitions> {
  observe(labels: LabelsOf<L>, value: number): void;
}

export interface NumberPoint {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface HistogramPoint {
  readonly labels: Readonly<Record<string, string>>;
  readonly boundaries: readonly number[];
  /** One more than there are boundaries: the last one counts the values above all of them. */
  readonly counts: readonly number[];
  readonly sum: number;
  readonly count: number;
}

/** The values of one metric at one moment, independent of the library. */
export type MetricSnapshot =
  | {
      readonly type: "counter" | "gauge";
      readonly name: string;
      readonly help: string;
      readonly points: readonly NumberPoint[];
    }
  | {
      readonly type: "histogram";
      readonly name: string;
      readonly help: string;
      readonly points: readonly HistogramPoint[];
    };

export interface MetricRegistry {
  counter<L extends LabelDefinitions>(definition: MetricDefinition<L>): Counter<L>;
  gauge<L extends LabelDefinitions>(definition: MetricDefinition<L>): Gauge<L>;
  histogram<L extends LabelDefinitions>(definition: MetricDefinition<L>): Histogram<L>;
  readonly contentType: string;
  render(): Promise<string>;
  snapshot(): Promise<readonly MetricSnapshot[]>;
}

export function createMetricRegistry(): MetricRegistry {
  const registry = new Registry();
  const histograms = new Map<string, readonly number[]>();

  function options({ name, help, labels }: MetricDefinition) {
    return { name, help, labelNames: Object.keys(labels), registers: [registry] };
  }

  return {
    contentType: registry.contentType,
    render: () => registry.metrics(),

    // An infinite value or a negative increment comes from a bug or from a clock that jumped. The library would throw,
    // and a measurement must not fail the code that it measures; so the value is dropped.
    counter(definition) {
      const counter = new PromCounter(options(definition));
      const bounded = createSeriesLimit(definition);
      return {
        inc(labels, by = 1) {
          if (Number.isFinite(by) && by >= 0) counter.inc(bounded(labels), by);
        },
      };
    },
    gauge(definition) {
      const gauge = new PromGauge(options(definition));
      const bounded = createSeriesLimit(definition);
      return {
        set(labels, value) {
          if (Number.isFinite(value)) gauge.set(bounded(labels), value);
        },
      };
    },
    histogram(definition) {
      const buckets = [...(definition.buckets ?? [])];
      const histogram = new PromHistogram({ ...options(definition), buckets });
      histograms.set(definition.name, buckets);
      const bounded = createSeriesLimit(definition);
      return {
        observe(labels, value) {
          if (Number.isFinite(value) && value >= 0) histogram.observe(bounded(labels), value);
        },
      };
    },

    async snapshot() {
      const metrics: readonly RawMetric[] = await registry.getMetricsAsJSON();
      return metrics.map((metric) => snapshotOf(metric, histograms.get(metric.name)));
    },
  };
}

type Labels = Record<string, string>;

function createSeriesLimit(definition: MetricDefinition): (labels: Labels) => Labels {
  const names = Object.keys(definition.labels);
  const other = Object.fromEntries(names.map((name) => [name, "other"]));
  const seen = new Set<string>();
  return (labels) => {
    const series = names.map((name) => labels[name]).join("\u0000");
    if (seen.has(series)) return labels;
    if (seen.size >= seriesMax) return other;
    seen.add(series);
    return labels;
  };
}

interface RawMetric {
  readonly name: string;
  readonly help: string;
  readonly type: unknown;
  readonly values?: readonly RawValue[];
}

interface RawValue {
  readonly labels: Partial<Record<string, string | number>>;
  readonly value: number;
  readonly metricName?: string;
}

function snapshotOf(metric: RawMetric, boundaries: readonly number[] | undefined): MetricSnapshot {
  const { name, help, values = [] } = metric;
  if (boundaries) return { type: "histogram", name, help, points: histogramPoints(name, boundaries, values) };
  const type = metric.type === "counter" ? "counter" : "gauge";
  return {
    type,
    name,
    help,
    points: values.map(({ labels, value }) => ({ labels: textLabels(labels), value })),
  };
}

/** The library returns a histogram as one list, like the text format: cumulative buckets, sum and count. */
function histogramPoints(
  name: string,
  boundaries: readonly number[],
  values: readonly RawValue[],
): readonly HistogramPoint[] {
  interface Series {
    readonly labels: Labels;
    readonly cumulative: number[];
    sum: number;
    count: number;
  }
  const bySeries = new Map<string, Series>();
  for (const { labels, value, metricName } of values) {
    const { le: _, ...own } = textLabels(labels);
    const id = JSON.stringify(Object.entries(own).sort());
    const series = bySeries.get(id) ?? { labels: own, cumulative: [], sum: 0, count: 0 };
    bySeries.set(id, series);
    if (metricName === `${name}_bucket`) series.cumulative.push(value);
    else if (metricName === `${name}_sum`) series.sum = value;
    else if (metricName === `${name}_count`) series.count = value;
  }
  return [...bySeries.values()].map(({ labels, cumulative, sum, count }) => ({
    labels,
    boundaries,
    counts: cumulative.map((upTo, index) => upTo - (cumulative[index - 1] ?? 0)),
    sum,
    count,
  }));
}

function textLabels(labels: RawValue["labels"]): Labels {
  return Object.fromEntries(Object.entries(labels).map(([name, value]) => [name, String(value)]));
}
