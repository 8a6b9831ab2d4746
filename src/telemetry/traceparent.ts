// The header in which a trace goes on at somebody else's: W3C Trace Context, version 00.
import type { SpanContext } from "@opentelemetry/api";

const form = /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})$/;
const sampled = 1;

/** Undefined for anything else: a header that cannot be read is as good as none. */
export function parseTraceparent(text: string): SpanContext | undefined {
  const [, traceId, spanId, flags] = form.exec(text) ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & sampled, isRemote: true };
}

export function formatTraceparent({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-0${traceFlags & sampled}`;
}
