// Spans that are kept instead of sent, for tests of those who make them.

import type { SpanValue } from "../../src/telemetry/span-catalogue.ts";
import type { OpenSpan, Spans } from "../../src/telemetry/spans.ts";

export interface RecordedSpan {
  readonly name: string;
  readonly attributes: Readonly<Record<string, SpanValue | undefined>>;
  /** What the caller was known to be in the middle of. */
  readonly continues?: string;
  readonly failure?: string;
}

/** How every one of them may be continued. */
export const recordedTraceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

export function createRecordedSpans(): { readonly spans: Spans; readonly seen: readonly RecordedSpan[] } {
  const seen: RecordedSpan[] = [];
  const spans: Spans = {
    async withSpan(definition, { subject, attributes, traceparent }, run) {
      const all = { ...attributes };
      let failure: string | undefined;
      const span: OpenSpan<typeof definition> = {
        traceparent: recordedTraceparent,
        set: (more) => void Object.assign(all, more),
        fail: (code) => {
          failure = code;
        },
      };
      try {
        return await run(span);
      } finally {
        seen.push({
          name: `${definition.name} ${subject}`,
          attributes: all,
          ...(traceparent !== undefined && { continues: traceparent }),
          ...(failure !== undefined && { failure }),
        });
      }
    },
  };
  return { spans, seen };
}
