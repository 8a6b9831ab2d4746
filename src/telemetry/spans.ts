// The interface of tracing. Callers get a Spans, or undefined when tracing is off.
import type { AttributesOf, SpanDefinition } from "./span-catalogue.ts";

export interface SpanStart<D extends SpanDefinition> {
  readonly subject: string;
  readonly attributes: AttributesOf<D>;
  /** The W3C traceparent of a remote caller, to continue its trace; ignored if invalid. For root spans only. */
  readonly traceparent?: string | undefined;
}

/** A span that has started. */
export interface OpenSpan<D extends SpanDefinition = SpanDefinition> {
  /** Sent to another process, so that it can continue the trace. */
  readonly traceparent: string;
  set(attributes: AttributesOf<D>): void;
  /** Records a failure by its code; a message might contain secrets (K7). */
  fail(code: string): void;
}

export interface Spans {
  /**
   * Runs the function inside a span, which is the parent of every span started within it. The span ends when the function
   * settles; an error is recorded by type and code, and rethrown unchanged.
   */
  withSpan<D extends SpanDefinition, T>(
    definition: D,
    start: SpanStart<D>,
    run: (span: OpenSpan<D>) => T | Promise<T>,
  ): Promise<T>;
}

/** For the deps of code that creates spans. Undefined when tracing is off. */
export interface Traced {
  readonly spans?: Spans | undefined;
}

export interface Tracing extends Traced {
  /** Flushes pending spans, for a few seconds at most. Never rejects; further calls do nothing. */
  shutdown(): Promise<void>;
}

export function createNoTracing(): Tracing {
  return { shutdown: async () => undefined };
}
