// What tracing is to those who use it, and the kind that does nothing.

export type SpanAttributes = Readonly<Record<string, string | number | boolean>>;

export interface Tracing {
  /**
   * Runs the function inside a span, which is the parent of every span begun within it. The span ends when the
   * result does; a failure is noted on it and thrown on as it is.
   */
  withSpan<T>(name: string, attributes: SpanAttributes, run: () => T | Promise<T>): Promise<T>;
  /** Sends what is waiting, for a few seconds at most. Never rejects, and does its work once. */
  shutdown(): Promise<void>;
}

export function createNoTracing(): Tracing {
  return {
    withSpan: async (_name, _attributes, run) => run(),
    shutdown: async () => undefined,
  };
}
