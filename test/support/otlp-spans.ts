// What a collector was sent, read without a library: the fields of protobuf messages by their numbers.
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";

/** The contents of every length-delimited field with this number. */
export function fields(message: Uint8Array, wanted: number): Uint8Array[] {
  const reader = new BinaryReader(message);
  const found: Uint8Array[] = [];
  while (reader.pos < reader.len) {
    const [number, wireType] = reader.tag();
    if (number === wanted && wireType === WireType.LengthDelimited) found.push(reader.bytes());
    else reader.skip(wireType);
  }
  return found;
}

export function at(message: Uint8Array, ...path: number[]): Uint8Array[] {
  return path.reduce((messages, number) => messages.flatMap((inner) => fields(inner, number)), [message]);
}

export const text = (bytes: Uint8Array | undefined) => Buffer.from(bytes ?? []).toString();
export const hex = (bytes: Uint8Array | undefined) => Buffer.from(bytes ?? []).toString("hex");

export interface SentSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  /** Empty for a root. */
  readonly parentId: string;
  /** Numbers and texts alike as text. */
  readonly attributes: Readonly<Record<string, string>>;
  /** With what it failed; undefined if it did not. */
  readonly failure: string | undefined;
}

// ExportTraceServiceRequest: resource_spans = 1, scope_spans = 2, spans = 2; in a span trace_id = 1, span_id = 2,
// parent_span_id = 4, name = 5, attributes = 9, status = 15. In a status message = 2, code = 3, of which ERROR = 2.
export function spansOf(body: Uint8Array): SentSpan[] {
  return at(body, 1, 2, 2).map((span) => {
    const [status = new Uint8Array()] = fields(span, 15);
    return {
      name: text(fields(span, 5)[0]),
      traceId: hex(fields(span, 1)[0]),
      spanId: hex(fields(span, 2)[0]),
      parentId: hex(fields(span, 4)[0]),
      attributes: Object.fromEntries(fields(span, 9).map(pairOf)),
      failure: hex(status).endsWith("1802") ? text(fields(status, 2)[0]) : undefined,
    };
  });
}

/** KeyValue: key = 1, value = 2, in that string_value = 1, bool_value = 2, int_value = 3. */
export function pairOf(pair: Uint8Array): [string, string] {
  const [value = new Uint8Array()] = fields(pair, 2);
  const reader = new BinaryReader(value);
  const [number] = reader.tag();
  const shown = number === 1 ? reader.string() : number === 3 ? String(reader.int64()) : `field ${number}`;
  return [text(fields(pair, 1)[0]), shown];
}
