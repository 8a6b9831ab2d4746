// What a PromQL query selects, and whether krane has such series.
import assert from "node:assert/strict";
import { serverMetricCatalogue } from "../../src/server/server-metrics.ts";
import { type MetricDefinition, metricCatalogue } from "../../src/telemetry/metric-catalogue.ts";
import { processMetricCatalogue } from "../../src/telemetry/process-metrics.ts";
import { valuesOf } from "./label-values.ts";

const metrics = new Map<string, MetricDefinition>(
  [metricCatalogue, serverMetricCatalogue, processMetricCatalogue]
    .flatMap((catalogue) => Object.values(catalogue) as MetricDefinition[])
    .map((metric) => [metric.name, metric]),
);

/** What Prometheus adds to every series, and the chart's PodMonitor to some. */
const outerLabels: ReadonlySet<string> = new Set(["instance", "region"]);

/** The metric behind a name in an expression; a histogram is three series. */
export function metricOf(name: string): MetricDefinition {
  const histogram = metrics.get(name.replace(/_(bucket|sum|count)$/, ""));
  const found = metrics.get(name) ?? (histogram?.type === "histogram" ? histogram : undefined);
  return found ?? assert.fail(`no metric ${name}`);
}

export interface Selector {
  readonly text: string;
  readonly name: string;
  readonly matchers: string;
}

export function selectorsOf(expr: string): readonly Selector[] {
  const found = [...expr.matchAll(/\b((?:unkey|process|nodejs)_\w+)(?:\{([^}]*)\})?/g)];
  return found.map(([text, name = "", matchers = ""]) => ({ text, name, matchers }));
}

/** Every metric is in the catalogues, with these labels and values, and is used as its type allows. */
export function assertKnownSeries(expr: string): void {
  const selected = selectorsOf(expr);
  assert.ok(selected.length > 0, expr);
  for (const { name, matchers } of selected) {
    const { labels } = metricOf(name);
    for (const [, label = "", operator, value = ""] of matchers.matchAll(/(\w+)(=~|=)"([^"]*)"/g)) {
      if (outerLabels.has(label)) continue;
      const values = labels[label] ?? assert.fail(`${name} has no label ${label}`);
      const listed = valuesOf(values);
      if (listed === undefined) continue;
      for (const one of operator === "=~" ? value.split("|") : [value])
        assert.ok(listed.includes(one), `${name}: ${label} is never ${one}`);
    }
  }
  for (const [, names = ""] of expr.matchAll(/(?:sum|count|max) by \(([^)]*)\)/g))
    for (const label of names.split(", ").filter((name) => !outerLabels.has(name) && name !== "le"))
      assert.ok(
        selected.some(({ name }) => label in metricOf(name).labels),
        `no label ${label}`,
      );
  for (const [, name = ""] of expr.matchAll(/(?:rate|increase)\(((?:unkey|process)_\w+)/g))
    assert.notEqual(metricOf(name).type, "gauge", expr);
  for (const [, name = ""] of expr.matchAll(/histogram_quantile\(.*?(unkey_\w+)_bucket/g))
    assert.equal(metricOf(name).type, "histogram", expr);
}
