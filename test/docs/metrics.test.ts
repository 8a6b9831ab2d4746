// docs/metrics.md against the code, in both directions: what the page lists is what the endpoint serves.
// UPDATE_GOLDEN=1 rewrites its tables.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { test } from "node:test";
import { type MetricDefinition, metricCatalogue } from "../../src/telemetry/metric-catalogue.ts";
import { createMetrics } from "../../src/telemetry/metrics.ts";
import { processMetricCatalogue } from "../../src/telemetry/process-metrics.ts";
import { valuesOf } from "../support/label-values.ts";

const page = new URL("../../docs/metrics.md", import.meta.url);

const krane: readonly MetricDefinition[] = Object.values(metricCatalogue);
const ofProcess: readonly MetricDefinition[] = Object.values(processMetricCatalogue);

function labelsCell({ labels }: MetricDefinition): string {
  const cells = Object.entries(labels).map(([name, values]) => {
    const listed = valuesOf(values);
    return listed === undefined ? `\`${name}\`` : `\`${name}\` (${listed.join(", ")})`;
  });
  return cells.join("; ") || "none";
}

function table(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [line(headings), line(headings.map(() => "---")), ...rows.map(line)].join("\n");
}

const tables: Readonly<Record<string, string>> = {
  krane: table(
    ["Name", "Type", "Labels", "Meaning", "Written by"],
    krane.map((metric) => [
      `\`${metric.name}\``,
      metric.type,
      labelsCell(metric),
      metric.help,
      metric.writer,
    ]),
  ),
  process: table(
    ["Name", "Type", "Labels", "Meaning"],
    ofProcess.map((metric) => [`\`${metric.name}\``, metric.type, labelsCell(metric), metric.help]),
  ),
  buckets: `\`${metricCatalogue.reconcileDuration.buckets.join(" ")}\``,
};

/** The page with what stands between the markers of each table replaced by that table. */
function generated(text: string): string {
  return Object.entries(tables).reduce((result, [name, content]) => {
    const [begin, end] = [`<!-- generated: ${name} -->`, "<!-- end -->"];
    const from = result.indexOf(begin);
    const to = result.indexOf(end, from);
    assert.ok(from >= 0 && to >= 0, `docs/metrics.md lacks the markers of the table "${name}"`);
    return `${result.slice(0, from + begin.length)}\n\n${content}\n\n${result.slice(to)}`;
  }, text);
}

test("docs/metrics.md has the tables that the catalogue gives", async () => {
  const text = await readFile(page, "utf8");
  const expected = generated(text);
  if (process.env["UPDATE_GOLDEN"] === "1") await writeFile(page, expected);
  else assert.equal(text, expected, "docs/metrics.md is not up to date: run this test with UPDATE_GOLDEN=1");
});

test("every metric on the endpoint is on the page, and the page names no other", async () => {
  const metrics = createMetrics({ version: "1", revision: "r", nodeVersion: process.version });
  const served = [...(await metrics.render()).matchAll(/^# HELP (\S+)/gm)].map(([, name]) => name);
  const text = await readFile(page, "utf8");
  const listed = [...text.matchAll(/^\| `([a-z0-9_]+)` \|/gm)].map(([, name]) => name);
  assert.ok(served.length > 20);
  assert.deepEqual(listed.sort(), served.sort());
  const mentioned = [...text.matchAll(/\b(?:unkey|process|nodejs)_[a-z0-9_]+/g)].map(([name]) => name);
  assert.deepEqual(
    mentioned.filter((name) => !served.includes(name)),
    [],
  );
});

test("each histogram of krane has the buckets that the page states", () => {
  for (const { name, type, buckets } of krane)
    if (type === "histogram") assert.deepEqual(buckets, metricCatalogue.reconcileDuration.buckets, name);
});

test("names follow Prometheus: a counter ends in _total, nothing else does, and durations are in seconds", () => {
  for (const { name, type } of [...krane, ...ofProcess]) {
    assert.match(name, /^[a-z][a-z0-9_]*$/);
    assert.equal(name.endsWith("_total"), type === "counter", name);
    if (type === "histogram") assert.ok(name.endsWith("_duration_seconds"), name);
  }
});
