// Creates spans with OpenTelemetry. They nest through the asynchronous context, and are exported in batches from a queue
// that drops the newest when it is full.
import {
  type Attributes,
  type Context,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import type { Resource } from "@opentelemetry/resources";
import {
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type ReadableSpan,
  type Sampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import { describeError } from "./error-description.ts";
import { type AgentOf, compression, type OnExported, watchExporter } from "./otlp-exporter.ts";
import { scrub } from "./scrub.ts";
import type { AttributesOf, SpanDefinition } from "./span-catalogue.ts";
import type { OpenSpan, Spans, Tracing } from "./spans.ts";

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
  const spans: Spans = { withSpan: createWithSpan(provider.getTracer("krane")) };
  return { spans, shutdown: () => provider.shutdown() };
}

/**
 * A span with a parent in krane follows its parent, so that a trace is never sampled in part. If a remote caller samples
 * its trace, krane's own rate decides; if the caller does not sample it, neither does krane.
 */
function samplerOf(sampleRate: number): Sampler {
  const root = sampleRate >= 1 ? new AlwaysOnSampler() : new TraceIdRatioBasedSampler(sampleRate);
  return new ParentBasedSampler({ root, remoteParentSampled: root });
}

const kinds = { internal: SpanKind.INTERNAL, client: SpanKind.CLIENT, server: SpanKind.SERVER } as const;

function createWithSpan(tracer: Tracer): Spans["withSpan"] {
  const contexts = new AsyncLocalStorageContextManager();
  const open = new Set<Span>();

  /** Ignores a span that has ended: work that outlives it still carries its context. */
  function currentContext(): Context {
    const active = contexts.active() ?? ROOT_CONTEXT;
    const span = trace.getSpan(active);
    return span !== undefined && open.has(span) ? active : ROOT_CONTEXT;
  }

  return async (definition, { subject, attributes, traceparent }, run) => {
    const parent = definition.isRoot ? callerContext(traceparent) : currentContext();
    const options = { kind: kinds[definition.kind], attributes: clean(attributes) };
    const span = tracer.startSpan(`${definition.name} ${subject}`, options, parent);
    const handle = new SpanHandle(span);
    open.add(span);
    try {
      return await contexts.with(trace.setSpan(parent, span), () => run(handle));
    } catch (error) {
      handle.failWith(error);
      throw error;
    } finally {
      open.delete(span);
      span.end();
    }
  };
}

function callerContext(traceparent: string | undefined): Context {
  const caller = traceparent === undefined ? undefined : parseTraceparent(traceparent);
  return caller === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, caller);
}

class SpanHandle<D extends SpanDefinition> implements OpenSpan<D> {
  private readonly span: Span;
  private isFailed = false;

  constructor(span: Span) {
    this.span = span;
  }

  get traceparent(): string {
    return formatTraceparent(this.span.spanContext());
  }

  set(attributes: AttributesOf<D>): void {
    this.span.setAttributes(clean(attributes));
  }

  fail(code: string): void {
    this.isFailed = true;
    this.span.setStatus({ code: SpanStatusCode.ERROR, message: scrub(code, attributeCharsMax) });
  }

  /**
   * Not the SDK's recordException, which records message and stack as they are. An error message often comes from a
   * server, which may quote the request (K7); it is in the log, where it is scrubbed.
   */
  failWith(error: unknown): void {
    const { type, code } = describeError(error);
    this.span.addEvent("exception", { "exception.type": type });
    if (!this.isFailed) this.fail(code === undefined ? type : `${type} ${code}`);
  }
}

function clean(attributes: AttributesOf<SpanDefinition>): Attributes {
  const cleaned: Attributes = {};
  for (const [name, value] of Object.entries(attributes))
    if (value !== undefined)
      cleaned[name] = typeof value === "string" ? scrub(value, attributeCharsMax) : value;
  return cleaned;
}

// The traceparent header: W3C Trace Context, version 00.
const traceparentForm = /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})$/;
const sampled = 1;

/** Returns undefined for an invalid header, which is then ignored. */
function parseTraceparent(text: string): SpanContext | undefined {
  const [, traceId, spanId, flags] = traceparentForm.exec(text) ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & sampled, isRemote: true };
}

function formatTraceparent({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-0${traceFlags & sampled}`;
}
