// What a server counts of its own, beside the calls that every part of krane counts.
import type { MetricDefinition } from "../telemetry/metric-definition.ts";
import { createMetricRegistry } from "../telemetry/metric-registry.ts";

const writer = "server";

export const serverMetricCatalogue = {
  streamsOpen: {
    type: "gauge",
    name: "unkey_krane_server_streams_open",
    help: "Streams of desired state that are open now.",
    labels: {},
    writer,
  },
  streamsRefused: {
    type: "counter",
    name: "unkey_krane_server_streams_refused_total",
    help: "Streams that were told to come again later.",
    labels: {},
    writer,
  },
  databaseUp: {
    type: "gauge",
    name: "unkey_krane_server_database_up",
    help: "1 while the database answers, else 0.",
    labels: {},
    writer,
  },
} as const satisfies Record<string, MetricDefinition>;

export interface ServerMetrics {
  countRefusedStream(): void;
  render(state: { readonly streamsOpen: number; readonly databaseUp: boolean }): Promise<string>;
}

export function createServerMetrics(): ServerMetrics {
  const registry = createMetricRegistry();
  const { streamsOpen, streamsRefused, databaseUp } = serverMetricCatalogue;
  const open = registry.gauge(streamsOpen);
  const refused = registry.counter(streamsRefused);
  const up = registry.gauge(databaseUp);
  return {
    countRefusedStream: () => refused.inc({}),
    render(state) {
      open.set({}, state.streamsOpen);
      up.set({}, state.databaseUp ? 1 : 0);
      return registry.render();
    },
  };
}
