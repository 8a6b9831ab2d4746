// What every request to the control plane carries: who sends it (the bearer token) and
// which region it is about. The region's place in a message is found in the message's
// own description, so that an RPC which is added later cannot forget it. Servers of
// different age look for it in different places; all of them get the same answer.
import { create, type DescField, type DescMessage, type Message } from "@bufbuild/protobuf";
import type { Interceptor } from "@connectrpc/connect";
import type { RegionKey } from "../config/config.ts";
import { RegionKeySchema } from "../gen/ctrl/v1/region_pb.ts";
import type { Bearer } from "./bearer.ts";

export interface RequestStamp {
  /** The token as it is now, and the region. */
  headers(signal: AbortSignal): Promise<StampHeaders>;
  /** What belongs into messages of this kind, by the names of their fields. */
  fields(description: DescMessage): StampFields;
}

export interface StampHeaders {
  readonly authorization: string;
  readonly "x-krane-region": string;
}

export type StampFields = Readonly<Record<string, unknown>>;

export function createRequestStamp(region: RegionKey, bearer: Bearer): RequestStamp {
  return {
    headers: async (signal) => ({
      authorization: await bearer.authorization(signal),
      "x-krane-region": region.label,
    }),
    fields: createFields(region),
  };
}

/** For roads that are the RPC library's own. */
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

/** There are as many kinds of messages as RPCs. */
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

/** A copy, because the message still belongs to whoever made the call, and may be frozen. */
function stamped(message: Message, fields: StampFields): Message {
  return Object.assign(Object.create(Object.getPrototypeOf(message)), message, fields);
}

function isRegionKey(field: DescField): boolean {
  return field.fieldKind === "message" && field.message.typeName === RegionKeySchema.typeName;
}

function isRegionText(field: DescField): boolean {
  return field.fieldKind === "scalar" && field.name === "region";
}
