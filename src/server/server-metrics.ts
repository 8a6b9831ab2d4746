// The server's own metrics, in addition to those for calls that every part of krane has.
import type { Clock } from "../concurrency/clock.ts";
import type { MetricDefinition } from "../telemetry/metric-catalogue.ts";
import { createMetricRegistry } from "../telemetry/metric-registry.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { Store } from "./store.ts";

const writer = "server";
const checkTimeoutMs = 400;

export const serverMetricCatalogue = {
  streamsOpen: {
    type: "gauge",
    name: "unkey_krane_server_streams_open",
    help: "Open streams of desired state.",
    labels: {},
    writer,
  },
  streamsRefused: {
    type: "counter",
    name: "unkey_krane_server_streams_refused_total",
    help: "Streams rejected with a hint to retry later.",
    labels: {},
    writer,
  },
  databaseUp: {
    type: "gauge",
    name: "unkey_krane_server_database_up",
    help: "1 while the database responds, otherwise 0.",
    labels: {},
    writer,
  },
  digestsWrong: {
    type: "counter",
    name: "unkey_krane_server_digests_wrong_total",
    help: "Digests of a region and kind that did not match their rows, and were corrected.",
    labels: {},
    writer,
  },
} as const satisfies Record<string, MetricDefinition>;

export interface ServerMetrics {
  countRefusedStream(): void;
  countWrongDigests(count: number): void;
  render(state: { readonly streamsOpen: number; readonly databaseUp: boolean }): Promise<string>;
}

export function createServerMetrics(): ServerMetrics {
  const registry = createMetricRegistry();
  const { streamsOpen, streamsRefused, databaseUp, digestsWrong } = serverMetricCatalogue;
  const open = registry.gauge(streamsOpen);
  const refused = registry.counter(streamsRefused);
  const wrong = registry.counter(digestsWrong);
  const up = registry.gauge(databaseUp);
  return {
    countRefusedStream: () => refused.inc({}),
    countWrongDigests: (count) => wrong.inc({}, count),
    render(state) {
      open.set({}, state.streamsOpen);
      up.set({}, state.databaseUp ? 1 : 0);
      return registry.render();
    },
  };
}

/** Renders both sets of metrics on one page. */
export function metricsPage(
  { metrics, own }: { readonly metrics: Metrics; readonly own: ServerMetrics },
  {
    streams,
    store,
  }: { readonly streams: { readonly openCount: number }; readonly store: Pick<Store, "regions"> },
  clock: Clock,
): Pick<Metrics, "contentType" | "render"> {
  return {
    contentType: metrics.contentType,
    async render() {
      const databaseUp = await isUp(store, clock);
      return (await metrics.render()) + (await own.render({ streamsOpen: streams.openCount, databaseUp }));
    },
  };
}

/** Never waits for a database that hangs: a scrape has to return what is known. */
function isUp(store: Pick<Store, "regions">, clock: Clock): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = clock.setTimer(checkTimeoutMs, () => resolve(false));
    store.regions().then(
      () => {
        timer.cancel();
        resolve(true);
      },
      () => {
        timer.cancel();
        resolve(false);
      },
    );
  });
}
