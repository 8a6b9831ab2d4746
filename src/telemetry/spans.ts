// What tracing is to those who use it, and the kind that does nothing.
import type { AttributesOf, SpanDefinition } from "./span-catalogue.ts";

export interface SpanStart<D extends SpanDefinition> {
  readonly subject: string;
  readonly attributes: AttributesOf<D>;
  /** The trace that a caller asks to continue, in the form of W3C; ignored where it is none. For roots only. */
  readonly traceparent?: string | undefined;
}

/** A span that has begun. */
export interface OpenSpan<D extends SpanDefinition = SpanDefinition> {
  /** How somebody else may continue the trace. */
  readonly traceparent: string;
  set(attributes: AttributesOf<D>): void;
  /** Notes a failure by its code; a text would have to be free of secrets (K7). */
  fail(code: string): void;
}

export interface Spans {
  /**
   * Runs the function inside a span, which is the parent of every span begun within it. The span ends when the
   * result does; a failure is noted on it, by type and code, and thrown on as it is.
   */
  withSpan<D extends SpanDefinition, T>(
    definition: D,
    start: SpanStart<D>,
    run: (span: OpenSpan<D>) => T | Promise<T>,
  ): Promise<T>;
}

/** What whoever makes spans takes among its deps. Undefined: it works as if there were no such thing as a span. */
export interface Traced {
  readonly spans?: Spans | undefined;
}

export interface Tracing extends Traced {
  /** Sends what is waiting, for a few seconds at most. Never rejects, and does its work once. */
  shutdown(): Promise<void>;
}

export function createNoTracing(): Tracing {
  return { shutdown: async () => undefined };
}
