// Metrics of the process itself. They are collected here, and not by the metrics library, because the library's observers
// (of garbage collection and of the event loop) cannot be stopped.
import { readFileSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { monitorEventLoopDelay, PerformanceObserver, constants as perf } from "node:perf_hooks";
import type { Clock } from "../concurrency/clock.ts";
import type { MetricDefinition } from "./metric-catalogue.ts";
import type { MetricRegistry } from "./metric-registry.ts";

const eventLoopResolutionMs = 20;

const gcKinds = ["major", "minor", "incremental", "weakcb", "other"] as const;

function gauge(name: string, help: string) {
  return { type: "gauge", name, help, labels: {}, writer: "process" } as const satisfies MetricDefinition;
}

export const processMetricCatalogue = {
  cpu: { ...gauge("process_cpu_seconds_total", "User and system CPU time spent."), type: "counter" },
  startTime: gauge("process_start_time_seconds", "When the process started, in seconds since 1970."),
  residentMemory: gauge("process_resident_memory_bytes", "Resident memory."),
  openFiles: gauge("process_open_fds", "Open file descriptors (Linux only)."),
  maxFiles: gauge("process_max_fds", "File descriptors that may be open at once (Linux only)."),
  heapTotal: gauge("nodejs_heap_size_total_bytes", "Size of the JavaScript heap."),
  heapUsed: gauge("nodejs_heap_size_used_bytes", "Used part of the JavaScript heap."),
  externalMemory: gauge(
    "nodejs_external_memory_bytes",
    "Memory outside the heap that JavaScript objects hold.",
  ),
  lagMean: gauge(
    "nodejs_eventloop_lag_mean_seconds",
    "Mean delay of the event loop since the last collection.",
  ),
  lagP50: gauge(
    "nodejs_eventloop_lag_p50_seconds",
    "Median delay of the event loop since the last collection.",
  ),
  lagP99: gauge(
    "nodejs_eventloop_lag_p99_seconds",
    "99th percentile of the delay of the event loop since the last collection.",
  ),
  lagMax: gauge(
    "nodejs_eventloop_lag_max_seconds",
    "Longest delay of the event loop since the last collection.",
  ),
  gcDuration: {
    ...gauge("nodejs_gc_duration_seconds", "Duration of garbage collections."),
    type: "histogram",
    labels: { kind: gcKinds },
    buckets: [0.001, 0.01, 0.1, 1, 2, 5],
  },
} as const satisfies Record<string, MetricDefinition>;

export interface ProcessMetrics {
  start(clock: Clock): void;
  stop(): void;
  /** Brings the values up to date; does nothing unless started. Never rejects. */
  collect(): Promise<void>;
}

export function createProcessMetrics(registry: MetricRegistry): ProcessMetrics {
  const instruments = createInstruments(registry);
  let watching: { readonly collect: () => void; readonly stop: () => void } | undefined;
  let cpuSeconds = 0;

  function collectCpu(): void {
    const { user, system } = process.cpuUsage();
    const total = (user + system) / 1e6;
    instruments.cpu.inc({}, total - cpuSeconds);
    cpuSeconds = total;
  }

  return {
    start(clock) {
      if (watching) return;
      watching = watchRuntime(instruments);
      instruments.startTime.set({}, clock.wallMs() / 1000 - process.uptime());
      instruments.maxFiles.set({}, loadMaxFiles());
    },
    stop() {
      watching?.stop();
      watching = undefined;
    },
    async collect() {
      if (!watching) return;
      watching.collect();
      collectCpu();
      const memory = process.memoryUsage();
      instruments.residentMemory.set({}, memory.rss);
      instruments.heapTotal.set({}, memory.heapTotal);
      instruments.heapUsed.set({}, memory.heapUsed);
      instruments.externalMemory.set({}, memory.external);
      instruments.openFiles.set({}, await loadOpenFiles());
    },
  };
}

type Instruments = ReturnType<typeof createInstruments>;

function createInstruments(registry: MetricRegistry) {
  const { cpu, gcDuration, ...gauges } = processMetricCatalogue;
  return {
    cpu: registry.counter(cpu),
    gcDuration: registry.histogram(gcDuration),
    startTime: registry.gauge(gauges.startTime),
    residentMemory: registry.gauge(gauges.residentMemory),
    openFiles: registry.gauge(gauges.openFiles),
    maxFiles: registry.gauge(gauges.maxFiles),
    heapTotal: registry.gauge(gauges.heapTotal),
    heapUsed: registry.gauge(gauges.heapUsed),
    externalMemory: registry.gauge(gauges.externalMemory),
    lagMean: registry.gauge(gauges.lagMean),
    lagP50: registry.gauge(gauges.lagP50),
    lagP99: registry.gauge(gauges.lagP99),
    lagMax: registry.gauge(gauges.lagMax),
  };
}

/** Neither observer keeps the process alive, and both end with stop(). */
function watchRuntime({ gcDuration, lagMean, lagP50, lagP99, lagMax }: Instruments) {
  const lag = monitorEventLoopDelay({ resolution: eventLoopResolutionMs });
  lag.enable();
  const collections = new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) gcDuration.observe({ kind: gcKind(entry) }, entry.duration / 1000);
  });
  collections.observe({ entryTypes: ["gc"] });
  return {
    collect() {
      lagMean.set({}, delaySeconds(lag.mean));
      lagP50.set({}, delaySeconds(lag.percentile(50)));
      lagP99.set({}, delaySeconds(lag.percentile(99)));
      lagMax.set({}, delaySeconds(lag.max));
      lag.reset();
    },
    stop() {
      lag.disable();
      collections.disconnect();
    },
  };
}

/** The monitor records the time between two ticks of its timer, so an idle loop shows one interval. */
function delaySeconds(tickNs: number): number {
  return Math.max(0, tickNs / 1e9 - eventLoopResolutionMs / 1000);
}

function gcKind(entry: object): (typeof gcKinds)[number] {
  // Every gc entry has it, but the type of the list does not say that these are gc entries.
  const kind = (entry as { readonly detail?: { readonly kind?: number } }).detail?.kind;
  if (kind === perf.NODE_PERFORMANCE_GC_MAJOR) return "major";
  if (kind === perf.NODE_PERFORMANCE_GC_MINOR) return "minor";
  if (kind === perf.NODE_PERFORMANCE_GC_INCREMENTAL) return "incremental";
  return kind === perf.NODE_PERFORMANCE_GC_WEAKCB ? "weakcb" : "other";
}

// Both return NaN, which the registry drops, if the file is missing.

async function loadOpenFiles(): Promise<number> {
  const open = await readdir("/proc/self/fd").catch(() => []);
  // One of them is the directory being listed.
  return open.length > 0 ? open.length - 1 : Number.NaN;
}

/** Read once, at the start: it does not change, and file descriptors may run out later. */
function loadMaxFiles(): number {
  try {
    const limits = readFileSync("/proc/self/limits", "utf8");
    return Number(/^Max open files\s+(\d+)/m.exec(limits)?.[1] ?? Number.NaN);
  } catch {
    return Number.NaN;
  }
}
