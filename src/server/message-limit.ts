// Keeps messages of desired state within what an agent can receive. One that is larger would end the agent's stream at the
// same place each time, and everything behind it would wait. The agent gets the id, the version and the size instead.
//
// An agent sends its limit in a header. One without the header is assumed to have the limit that all krane agents have
// had. An agent of the original has none, but loses nothing: an object of this size is five times what an API server
// stores.
import { type DescMessage, type Message, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { messageBytesHeader } from "../control-plane/calls.ts";
import { type KindName, kindOf, type StateMessage } from "../kinds/kinds.ts";
import { tooLargeState } from "./kind-messages.ts";
import { contentOf, type Row, stateOf } from "./store.ts";

const bytesMaxDefault = 8 * 1024 * 1024;
// Every `too_large` fits. A lower limit would leave nothing that can be sent.
const bytesMaxLowest = 4 * 1024;

/** Undefined if the agent sends no limit. */
export function sentLimit(headers: Headers): number | undefined {
  const text = headers.get(messageBytesHeader);
  if (text === null) return undefined;
  const bytes = /^\d{1,10}$/.test(text) ? Number(text) : 0;
  if (bytes < bytesMaxLowest)
    throw new ConnectError(`${messageBytesHeader} must be at least ${bytesMaxLowest}`, Code.InvalidArgument);
  return bytes;
}

export function streamLimit(headers: Headers): number {
  return sentLimit(headers) ?? bytesMaxDefault;
}

/** The state of a row, as an agent with this limit can receive it. */
export function limitedState<K extends KindName>(kind: K, row: Row<K>, bytesMax: number): StateMessage<K> {
  const state = stateOf(kind, row);
  if (row.desired !== "running" || bytesAtMost([row.spec, contentOf(row)]) <= bytesMax) return state;
  const schema: DescMessage = kindOf(kind).stateSchema;
  const bytes = toBinary(schema, state as Message).byteLength;
  return bytes <= bytesMax
    ? state
    : tooLargeState(kind, row.spec, row.version, { bytes, bytesMax }, contentOf(row));
}

// More than the tags and lengths of a field, and than any number.
const fieldBytesMax = 20;
const utf8BytesMax = 3;

/** An upper bound of the encoded size: much cheaper than encoding, and enough for almost every message. */
function bytesAtMost(value: unknown): number {
  if (typeof value === "string") return fieldBytesMax + utf8BytesMax * value.length;
  if (value instanceof Uint8Array) return fieldBytesMax + value.byteLength;
  if (typeof value !== "object" || value === null) return fieldBytesMax;
  let bytes = fieldBytesMax;
  for (const part of Object.values(value)) bytes += bytesAtMost(part);
  return bytes;
}
