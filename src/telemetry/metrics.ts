// krane's metrics: one typed member per entry of the catalogue, plus metrics of the process. Creating them starts
// nothing; the process is observed from start() to stop().
import type { Clock } from "../concurrency/clock.ts";
import { type LabelDefinitions, metricCatalogue } from "./metric-catalogue.ts";
import {
  type Counter,
  createMetricRegistry,
  type Gauge,
  type Histogram,
  type MetricRegistry,
  type MetricSnapshot,
} from "./metric-registry.ts";
import { createProcessMetrics } from "./process-metrics.ts";

export interface BuildInfo {
  readonly version: string;
  readonly revision: string;
  readonly nodeVersion: string;
}

export interface MetricsDeps {
  readonly clock: Clock;
  /** The log, whose lost lines are counted at each collection. */
  readonly log: { readonly dropped: number };
}

type Catalogue = typeof metricCatalogue;

interface InstrumentOf<L extends LabelDefinitions> {
  counter: Counter<L>;
  gauge: Gauge<L>;
  histogram: Histogram<L>;
}

type Instruments = {
  readonly [Name in keyof Catalogue]: InstrumentOf<Catalogue[Name]["labels"]>[Catalogue[Name]["type"]];
};

export interface Metrics extends Instruments {
  /** Starts observing the process. */
  start(deps: MetricsDeps): void;
  stop(): void;
  /** The media type of what render() returns. */
  readonly contentType: string;
  /** Everything in the Prometheus text format. */
  render(): Promise<string>;
  /** Everything as values, for pushing them elsewhere. */
  snapshot(): Promise<readonly MetricSnapshot[]>;
}

export function createMetrics(build: BuildInfo): Metrics {
  const registry = createMetricRegistry();
  const instruments = createInstruments(registry);
  const processMetrics = createProcessMetrics(registry);
  const { version, revision, nodeVersion } = build;
  instruments.buildInfo.set({ service: "krane", version, revision, nodeversion: nodeVersion }, 1);

  let log: MetricsDeps["log"] | undefined;
  let droppedSeen = 0;
  async function collect(): Promise<void> {
    const dropped = log?.dropped ?? 0;
    instruments.telemetryFailures.inc({ signal: "logs" }, dropped - droppedSeen);
    droppedSeen = dropped;
    await processMetrics.collect();
  }

  return {
    ...instruments,
    contentType: registry.contentType,
    start(deps) {
      log = deps.log;
      processMetrics.start(deps.clock);
    },
    stop: () => processMetrics.stop(),
    render: sharedWhileRunning(async () => {
      await collect();
      return registry.render();
    }),
    snapshot: sharedWhileRunning(async () => {
      await collect();
      return registry.snapshot();
    }),
  };
}

function createInstruments(registry: MetricRegistry): Instruments {
  const instruments = Object.entries(metricCatalogue).map(([name, definition]) => [
    name,
    registry[definition.type](definition),
  ]);
  // The compiler cannot follow a mapped type through Object.entries; the type comes from the same table.
  return Object.fromEntries(instruments) as Instruments;
}

/**
 * Concurrent calls share one run. A collection opens files, and any client of the port can send thousands of requests at
 * once: with one run each, the process would run out of file descriptors and memory.
 */
function sharedWhileRunning<T>(run: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | undefined;
  return () => {
    running ??= run().finally(() => {
      running = undefined;
    });
    return running;
  };
}
