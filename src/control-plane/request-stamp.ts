// What every request to the control plane carries: who sends it (the bearer token) and
// which region it is about. The region's place in a message is found in the message's
// own description, so that an RPC which is added later cannot forget it. Servers of
// different age look for it in different places; all of them get the same answer.
import { create, type DescField, type DescMessage, type Message } from "@bufbuild/protobuf";
import type { Interceptor } from "@connectrpc/connect";
import type { RegionKey } from "../config/config.ts";
import { RegionKeySchema } from "../gen/ctrl/v1/region_pb.ts";
import type { Bearer } from "./bearer.ts";

export function createRequestStamp(region: RegionKey, bearer: Bearer): Interceptor {
  const stampOf = createStamps(region);
  return (next) => async (request) => {
    await bearer.authorize(request.header, request.signal);
    request.header.set("X-Krane-Region", region.label);
    const stamp = stampOf(request.method.input);
    if (!request.stream) return next({ ...request, message: stamped(request.message, stamp) });
    return next({ ...request, message: eachStamped(request.message, stamp) });
  };
}

async function* eachStamped(messages: AsyncIterable<Message>, stamp: Stamp): AsyncIterable<Message> {
  for await (const message of messages) yield stamped(message, stamp);
}

type Stamp = Readonly<Record<string, unknown>>;

/** What to put into messages of each kind, by the names of their fields. There are as many kinds as RPCs. */
function createStamps({ platform, name, label }: RegionKey): (description: DescMessage) => Stamp {
  const regionKey = create(RegionKeySchema, { platform, name });
  const stamps = new Map<string, Stamp>();
  return (description) => {
    const known = stamps.get(description.typeName);
    if (known !== undefined) return known;
    const entries = description.fields.flatMap((field) => {
      if (isRegionKey(field)) return [[field.localName, regionKey]];
      return isRegionText(field) ? [[field.localName, label]] : [];
    });
    const stamp: Stamp = Object.fromEntries(entries);
    stamps.set(description.typeName, stamp);
    return stamp;
  };
}

/** A copy, because the message still belongs to whoever made the call, and may be frozen. */
function stamped(message: Message, stamp: Stamp): Message {
  return Object.assign(Object.create(Object.getPrototypeOf(message)), message, stamp);
}

function isRegionKey(field: DescField): boolean {
  return field.fieldKind === "message" && field.message.typeName === RegionKeySchema.typeName;
}

function isRegionText(field: DescField): boolean {
  return field.fieldKind === "scalar" && field.name === "region";
}
