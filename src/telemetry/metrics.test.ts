import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";
import { register } from "prom-client";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { metricCatalogue } from "./metric-catalogue.ts";
import { createMetrics } from "./metrics.ts";

const build = { version: "1.2.3", revision: "abc", nodeVersion: "v20.20.0" };

/** The lines of one metric with values, without those that describe it. */
function series(text: string, name: string): string[] {
  return text.split("\n").filter((line) => line.startsWith(name));
}

test("a counter, a histogram and the build info are on the endpoint with their labels", async () => {
  const metrics = createMetrics(build);
  metrics.controlPlaneReconnects.inc({ controller: "deployments" });
  metrics.controlPlaneReconnects.inc({ controller: "deployments" }, 2);
  metrics.secretsDuration.observe({}, 0.3);
  const text = await metrics.render();
  assert.deepEqual(series(text, "unkey_krane_controlplane_reconnects_total"), [
    'unkey_krane_controlplane_reconnects_total{controller="deployments"} 3',
  ]);
  const duration = series(text, "unkey_krane_secrets_duration_seconds");
  assert.ok(duration.includes('unkey_krane_secrets_duration_seconds_bucket{le="0.2"} 0'));
  assert.ok(duration.includes('unkey_krane_secrets_duration_seconds_bucket{le="0.3"} 1'));
  assert.ok(duration.includes('unkey_krane_secrets_duration_seconds_bucket{le="+Inf"} 1'));
  assert.deepEqual(series(text, "unkey_build_info"), [
    'unkey_build_info{service="krane",version="1.2.3",revision="abc",nodeversion="v20.20.0"} 1',
  ]);
  assert.equal(metrics.contentType, "text/plain; version=0.0.4; charset=utf-8");
});

test("an undeclared label or an unlisted value does not compile", () => {
  const { controlPlaneReconnects, secretsRequests } = createMetrics(build);
  // @ts-expect-error the value is not in the list
  secretsRequests.inc({ result: "perhaps" });
  assert.throws(() => {
    // @ts-expect-error the label does not exist
    controlPlaneReconnects.inc({ controller: "cilium", workspace_id: "ws_1" });
  }, /workspace_id/);
});

test("two sets of metrics share nothing, and the library's global registry stays empty", async () => {
  const [first, second] = [createMetrics(build), createMetrics(build)];
  first.resyncCorrections.inc({ controller: "cilium" });
  assert.equal(series(await first.render(), "unkey_krane_resync_corrections_total").length, 1);
  assert.equal(series(await second.render(), "unkey_krane_resync_corrections_total").length, 0);
  assert.deepEqual(register.getMetricsAsArray(), []);
});

test("an invalid value is dropped and does not fail the caller", async () => {
  const metrics = createMetrics(build);
  for (const value of [Number.NaN, Number.POSITIVE_INFINITY, -1]) {
    metrics.resyncDuration.observe({ controller: "cilium" }, value);
    metrics.resyncCorrections.inc({ controller: "cilium" }, value);
  }
  const text = await metrics.render();
  assert.deepEqual(series(text, "unkey_krane_resync_"), []);
});

test("the number of series of one metric is limited", async () => {
  const metrics = createMetrics(build);
  for (let n = 0; n < 1500; n++) metrics.internalPanics.inc({ caller: "loop", path: `/${n}` });
  metrics.internalPanics.inc({ caller: "loop", path: "/7" });
  const lines = series(await metrics.render(), "unkey_internal_panics_total");
  assert.equal(lines.length, 1001);
  assert.ok(lines.includes('unkey_internal_panics_total{caller="other",path="other"} 500'));
  assert.ok(lines.includes('unkey_internal_panics_total{caller="loop",path="/7"} 2'));
});

test("process metrics have values between start and stop, and are not collected outside", async () => {
  const metrics = createMetrics(build);
  const names = [
    "process_cpu_seconds_total",
    "process_start_time_seconds",
    "process_resident_memory_bytes",
    "nodejs_heap_size_used_bytes",
    "nodejs_eventloop_lag_p99_seconds",
  ];
  const values = async () => {
    const points = new Map((await metrics.snapshot()).map(({ name, points }) => [name, points[0]]));
    return names.map((name) => {
      const point = points.get(name);
      return point && "value" in point ? point.value : undefined;
    });
  };
  assert.deepEqual(await values(), [0, 0, 0, 0, 0]);
  metrics.start({ clock: new FakeClock(), log: { dropped: 0 } });
  metrics.start({ clock: new FakeClock(), log: { dropped: 0 } });
  const [cpu, startTime, ...rest] = await values();
  assert.ok(cpu !== undefined && cpu > 0);
  assert.ok(startTime !== undefined && Math.abs(startTime - Date.UTC(2026, 0, 1) / 1000) < 3600);
  for (const value of rest) assert.ok(value !== undefined && value >= 0);
  metrics.stop();
  const stopped = await values();
  assert.deepEqual(await values(), stopped);
  metrics.stop();
});

test("dropped log lines are counted", async () => {
  const metrics = createMetrics(build);
  const log = { dropped: 3 };
  metrics.start({ clock: new FakeClock(), log });
  metrics.stop();
  const lost = async () => series(await metrics.render(), "unkey_krane_telemetry_failures_total");
  assert.deepEqual(await lost(), ['unkey_krane_telemetry_failures_total{signal="logs"} 3']);
  log.dropped = 5;
  assert.deepEqual(await lost(), ['unkey_krane_telemetry_failures_total{signal="logs"} 5']);
});

test("concurrent scrapes share one collection, and the next one gets its own", async () => {
  const metrics = createMetrics(build);
  let collections = 0;
  const log = {
    get dropped() {
      collections++;
      return 0;
    },
  };
  metrics.start({ clock: new FakeClock(), log });
  const texts = new Set(await Promise.all(Array.from({ length: 5000 }, () => metrics.render())));
  assert.deepEqual([texts.size, collections], [1, 1]);
  metrics.controlPlaneReconnects.inc({ controller: "cilium" });
  assert.match(
    await metrics.render(),
    /^unkey_krane_controlplane_reconnects_total\{controller="cilium"\} 1$/m,
  );
  assert.equal(collections, 2);
  metrics.stop();
});

test("a snapshot has a histogram's counts per bucket, one more than there are boundaries", async () => {
  const metrics = createMetrics(build);
  for (const seconds of [0.0005, 0.3, 0.3, 11])
    metrics.reconcileDuration.observe({ controller: "cilium", operation: "apply" }, seconds);
  metrics.reconcileDuration.observe({ controller: "cilium", operation: "delete" }, 2);
  const snapshot = (await metrics.snapshot()).find(
    ({ name }) => name === "unkey_krane_reconcile_duration_seconds",
  );
  assert.ok(snapshot?.type === "histogram");
  const [apply, remove] = snapshot.points;
  assert.deepEqual(apply?.labels, { controller: "cilium", operation: "apply" });
  assert.deepEqual(apply?.counts, [1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
  assert.equal(apply?.counts.length, (apply?.boundaries.length ?? 0) + 1);
  assert.deepEqual([apply?.count, apply?.sum], [4, 11.6005]);
  assert.deepEqual([remove?.count, remove?.sum], [1, 2]);
});

test("no metric has a label for ids, which would grow without limit", () => {
  for (const { name, labels } of Object.values(metricCatalogue))
    for (const label of Object.keys(labels)) assert.ok(!label.endsWith("id"), `${name} ${label}`);
});

test("a process that started metrics and never stopped them still exits", async () => {
  const program = `
    import { createMetrics } from ${JSON.stringify(new URL("./metrics.ts", import.meta.url))};
    import { createSystemClock } from ${JSON.stringify(new URL("../concurrency/clock.ts", import.meta.url))};
    const metrics = createMetrics({ version: "1", revision: "r", nodeVersion: process.version });
    metrics.start({ clock: createSystemClock(), log: { dropped: 0 } });
    await metrics.render();
    process.on("exit", () => console.log("ended"));
  `;
  const { stdout } = await promisify(execFile)(process.execPath, [
    "--import",
    "tsx",
    "--input-type=module",
    "-e",
    program,
  ]);
  assert.equal(stdout, "ended\n");
});
