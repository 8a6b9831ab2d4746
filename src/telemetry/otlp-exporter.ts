// What the exporters of traces and of metrics share: connections that can be ended, and an eye on whether the
// collector takes what is sent. The SDK reports failures to a global logger that nobody set; ours are counted, and
// said once when they begin and once when they end.
import { readFile } from "node:fs/promises";
import { Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import type { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import type { Log } from "./log.ts";
import type { Metrics } from "./metrics.ts";

type ExporterConfig = NonNullable<ConstructorParameters<typeof OTLPTraceExporter>[0]>;

// The SDK has these as an enum of a package that is not a direct dependency; this is the value of its GZIP.
export const compression = "gzip" as NonNullable<ExporterConfig["compression"]>;

export type AgentOf = Extract<ExporterConfig["httpAgentOptions"], (protocol: string) => unknown>;

type Signal = "TRACES" | "METRICS";

export interface OtlpAgents {
  forSignal(signal: Signal): AgentOf;
  /** Ends every connection, and fails every attempt to open another: after this nothing is sent (K10). */
  destroy(): void;
}

/**
 * The exporters would make agents of their own, which nobody can end: a request to a collector that does not answer
 * would keep the process alive after everything else has stopped. With an agent of ours the exporter does not read
 * the standard variables for certificates, so they are read here. A file that is missing fails each export.
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

/** The variables with an address that the exporters would silently replace by their default, a collector on this host. */
export function unusableEndpoints(env: Readonly<Record<string, string | undefined>>): readonly string[] {
  return endpointVariables.filter((name) => {
    const address = env[name]?.trim() ?? "";
    // Without a scheme, as in "collector:4318", the host would be taken for one.
    return address !== "" && !(/^https?:/i.test(address) && URL.canParse(address));
  });
}

/** Told of the end of every export: without an error it went well. */
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
        if (failing) log.warn("telemetry cannot be exported", { signal, error });
        else log.info("telemetry is exported again", { signal });
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
