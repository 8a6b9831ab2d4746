// What the exporters of traces and metrics share: connections that can be closed, and the detection of failed exports.
// The SDK reports failures to a global logger that is not set; krane counts them, and logs once when they begin and once
// when they end.
import { readFile } from "node:fs/promises";
import { Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import type { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import type { Log } from "./log.ts";
import type { Metrics } from "./metrics.ts";

type ExporterConfig = NonNullable<ConstructorParameters<typeof OTLPTraceExporter>[0]>;

// The value of GZIP in an enum of the SDK, whose package is not a direct dependency.
export const compression = "gzip" as NonNullable<ExporterConfig["compression"]>;

export type AgentOf = Extract<ExporterConfig["httpAgentOptions"], (protocol: string) => unknown>;

type Signal = "TRACES" | "METRICS";

export interface OtlpAgents {
  forSignal(signal: Signal): AgentOf;
  /** Closes every connection and fails every new one: nothing is sent afterwards (K10). */
  destroy(): void;
}

/**
 * The exporters would create their own agents, which cannot be closed: a request to a collector that does not respond
 * would keep the process alive after everything else has stopped. With a custom agent, the exporter ignores the standard
 * variables for certificates, so they are read here. A missing file fails each export.
 */
export function createOtlpAgents(env: Readonly<Record<string, string | undefined>>): OtlpAgents {
  const open = new Set<HttpAgent>();
  let destroyed = false;

  async function load(signal: Signal, setting: string): Promise<Buffer | undefined> {
    const path = env[`OTEL_EXPORTER_OTLP_${signal}_${setting}`] || env[`OTEL_EXPORTER_OTLP_${setting}`];
    return path ? await readFile(path) : undefined;
  }

  function tracked<A extends HttpAgent>(agent: A): A {
    const createConnection = agent.createConnection.bind(agent);
    agent.createConnection = (...args: Parameters<typeof createConnection>) => {
      if (destroyed) throw new Error("telemetry has been shut down");
      return createConnection(...args);
    };
    open.add(agent);
    return agent;
  }

  return {
    forSignal: (signal) => async (protocol) => {
      if (protocol === "http:") return tracked(new HttpAgent({ keepAlive: true }));
      const ca = await load(signal, "CERTIFICATE");
      const cert = await load(signal, "CLIENT_CERTIFICATE");
      const key = await load(signal, "CLIENT_KEY");
      return tracked(
        new HttpsAgent({
          keepAlive: true,
          ...(ca ? { ca } : {}),
          ...(cert ? { cert } : {}),
          ...(key ? { key } : {}),
        }),
      );
    },
    destroy() {
      destroyed = true;
      for (const agent of open) agent.destroy();
    },
  };
}

const endpointVariables = ["", "TRACES_", "METRICS_"].map((signal) => `OTEL_EXPORTER_OTLP_${signal}ENDPOINT`);

/** The variables with an invalid address, which the exporters would silently replace by a collector on localhost. */
export function unusableEndpoints(env: Readonly<Record<string, string | undefined>>): readonly string[] {
  return endpointVariables.filter((name) => {
    const address = env[name]?.trim() ?? "";
    // Without a scheme, as in "collector:4318", the host would be parsed as one.
    return address !== "" && !(/^https?:/i.test(address) && URL.canParse(address));
  });
}

/** Called at the end of every export; undefined for a success. */
export type OnExported = (error: unknown) => void;

export interface ExportWatch {
  forSignal(signal: "traces" | "metrics"): OnExported;
  stop(): void;
}

export function createExportWatch(log: Log, failures: Metrics["telemetryFailures"] | undefined): ExportWatch {
  let stopped = false;
  return {
    forSignal(signal) {
      let failing = false;
      return (error) => {
        if (stopped) return;
        if (error !== undefined) failures?.inc({ signal });
        if (failing === (error !== undefined)) return;
        failing = !failing;
        if (failing) log.warn("telemetry export failed", { signal, error });
        else log.info("telemetry export recovered", { signal });
      };
    },
    stop() {
      stopped = true;
    },
  };
}

interface ExportResult {
  readonly code: number;
  readonly error?: Error;
}

interface Exporter<T> {
  export(items: T, done: (result: ExportResult) => void): void;
  forceFlush(): Promise<void>;
  shutdown(): Promise<void>;
}

export function watchExporter<T>(exporter: Exporter<T>, onExported: OnExported): Exporter<T> {
  return {
    export(items, done) {
      exporter.export(items, (result) => {
        const succeeded = result.code === 0;
        onExported(succeeded ? undefined : (result.error ?? new Error("the export failed without a reason")));
        done(result);
      });
    },
    forceFlush: () => exporter.forceFlush(),
    shutdown: () => exporter.shutdown(),
  };
}
