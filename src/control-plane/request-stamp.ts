// Adds the bearer token, the region and the known incarnation to every request. The region field is found through the message's descriptor, so
// that an RPC added later cannot forget it. Older and newer servers read the region from different places, so all of
// them are set.
import { create, type DescField, type DescMessage, type Message } from "@bufbuild/protobuf";
import type { Interceptor } from "@connectrpc/connect";
import type { RegionKey } from "../config/config.ts";
import { RegionKeySchema } from "../gen/ctrl/v1/region_pb.ts";
import type { Bearer } from "./bearer.ts";

export interface RequestStamp {
  /** The current token, the region and the known incarnation. */
  headers(signal: AbortSignal): Promise<StampHeaders>;
  /** The values to set in messages of this type, by field name. */
  fields(description: DescMessage): StampFields;
}

export interface StampHeaders {
  readonly authorization: string;
  readonly "x-krane-region": string;
  readonly [name: string]: string;
}

export type StampFields = Readonly<Record<string, unknown>>;

export function createRequestStamp(
  region: RegionKey,
  bearer: Bearer,
  more: () => Readonly<Record<string, string>> = () => ({}),
): RequestStamp {
  return {
    headers: async (signal) => ({
      authorization: await bearer.authorization(signal),
      "x-krane-region": region.label,
      ...more(),
    }),
    fields: createFields(region),
  };
}

/** For calls through the RPC library's own transport. */
export function createStampInterceptor(stamp: RequestStamp): Interceptor {
  return (next) => async (request) => {
    const headers = await stamp.headers(request.signal);
    for (const [name, value] of Object.entries(headers)) request.header.set(name, value);
    const fields = stamp.fields(request.method.input);
    if (!request.stream) return next({ ...request, message: stamped(request.message, fields) });
    return next({ ...request, message: eachStamped(request.message, fields) });
  };
}

async function* eachStamped(messages: AsyncIterable<Message>, fields: StampFields): AsyncIterable<Message> {
  for await (const message of messages) yield stamped(message, fields);
}

/** Cached per message type; there are as many types as RPCs. */
function createFields({ platform, name, label }: RegionKey): (description: DescMessage) => StampFields {
  const regionKey = create(RegionKeySchema, { platform, name });
  const stamps = new Map<string, StampFields>();
  return (description) => {
    const known = stamps.get(description.typeName);
    if (known !== undefined) return known;
    const entries = description.fields.flatMap((field) => {
      if (isRegionKey(field)) return [[field.localName, regionKey]];
      return isRegionText(field) ? [[field.localName, label]] : [];
    });
    const stamp: StampFields = Object.fromEntries(entries);
    stamps.set(description.typeName, stamp);
    return stamp;
  };
}

/** A copy, because the message belongs to the caller, and may be frozen. */
function stamped(message: Message, fields: StampFields): Message {
  return Object.assign(Object.create(Object.getPrototypeOf(message)), message, fields);
}

function isRegionKey(field: DescField): boolean {
  return field.fieldKind === "message" && field.message.typeName === RegionKeySchema.typeName;
}

function isRegionText(field: DescField): boolean {
  return field.fieldKind === "scalar" && field.name === "region";
}
