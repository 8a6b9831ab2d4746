// Spans: begun with withSpan, nested through the asynchronous context, sent in batches from a queue that drops the
// newest when it is full.
import { ROOT_CONTEXT, type Span, SpanStatusCode, type Tracer, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import type { Resource } from "@opentelemetry/resources";
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type ReadableSpan,
  type Sampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import { describeError } from "./error-description.ts";
import type { SpanAttributes, Tracing } from "./no-tracing.ts";
import { type AgentOf, compression, type OnExported, watchExporter } from "./otlp-exporter.ts";
import { scrub } from "./scrub.ts";

const queueSpansMax = 2048;
const batchSpansMax = 512;
const batchDelayMs = 5_000;
const exportTimeoutMs = 15_000;
const attributeCharsMax = 1024;
const attributesMax = 64;

export interface SpansOptions {
  readonly resource: Resource;
  readonly sampleRate: number;
  readonly agentOf: AgentOf;
  readonly onExported: OnExported;
}

export function createSpans({ resource, sampleRate, agentOf, onExported }: SpansOptions): Tracing {
  const exporter = new OTLPTraceExporter({ compression, httpAgentOptions: agentOf });
  const provider = new TracerProvider({
    resource,
    sampler: samplerOf(sampleRate),
    spanLimits: { attributeValueLengthLimit: attributeCharsMax, attributeCountLimit: attributesMax },
    spanProcessors: [
      new BatchSpanProcessor({
        exporter: watchExporter<ReadableSpan[]>(exporter, onExported),
        maxQueueSize: queueSpansMax,
        maxExportBatchSize: batchSpansMax,
        scheduledDelayMillis: batchDelayMs,
        exportTimeoutMillis: exportTimeoutMs,
      }),
    ],
  });
  return { withSpan: createWithSpan(provider.getTracer("krane")), shutdown: () => provider.shutdown() };
}

/** Always relative to the parent, so that a trace is never kept in part. */
function samplerOf(sampleRate: number): Sampler {
  if (sampleRate >= 1) return new ParentBasedSampler({ root: new AlwaysOnSampler() });
  if (sampleRate <= 0) return new ParentBasedSampler({ root: new AlwaysOffSampler() });
  return new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(sampleRate) });
}

function createWithSpan(tracer: Tracer): Tracing["withSpan"] {
  const contexts = new AsyncLocalStorageContextManager();
  return async (name, attributes, run) => {
    const parent = contexts.active() ?? ROOT_CONTEXT;
    const span = tracer.startSpan(name, { attributes: clean(attributes) }, parent);
    try {
      return await contexts.with(trace.setSpan(parent, span), run);
    } catch (error) {
      recordFailure(span, error);
      throw error;
    } finally {
      span.end();
    }
  };
}

/** Not the SDK's recordException: it takes message and stack as they are, secrets included (K7). */
function recordFailure(span: Span, error: unknown): void {
  const { type, message } = describeError(error);
  span.addEvent("exception", { "exception.type": type, "exception.message": message });
  span.setStatus({ code: SpanStatusCode.ERROR, message });
}

function clean(attributes: SpanAttributes): SpanAttributes {
  return Object.fromEntries(
    Object.entries(attributes).map(([name, value]) => [
      name,
      typeof value === "string" ? scrub(value, attributeCharsMax) : value,
    ]),
  );
}
