// What every request to the control plane carries: who sends it (the bearer token) and
// which region it is about. The region's place in a message is found in the message's
// own description, so that an RPC which is added later cannot forget it. Servers of
// different age look for it in different places; all of them get the same answer.
import { clone, create, type DescField, type DescMessage, type Message } from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import type { Interceptor } from "@connectrpc/connect";
import type { RegionKey } from "../config/config.ts";
import { RegionKeySchema } from "../gen/ctrl/v1/region_pb.ts";
import type { Bearer } from "./bearer.ts";

export function createRequestStamp(region: RegionKey, bearer: Bearer): Interceptor {
  return (next) => async (request) => {
    await bearer.authorize(request.header, request.signal);
    request.header.set("X-Krane-Region", region.label);
    const { input } = request.method;
    if (!request.stream) return next({ ...request, message: withRegion(input, request.message, region) });
    return next({ ...request, message: eachWithRegion(input, request.message, region) });
  };
}

async function* eachWithRegion(
  description: DescMessage,
  messages: AsyncIterable<Message>,
  region: RegionKey,
): AsyncIterable<Message> {
  for await (const message of messages) yield withRegion(description, message, region);
}

/** A copy, because the message still belongs to whoever made the call, and may be frozen. */
function withRegion(description: DescMessage, message: Message, region: RegionKey): Message {
  const stamped = clone(description, message);
  const fields = reflect(description, stamped, false);
  for (const field of description.fields) {
    if (isRegionKey(field)) {
      const { platform, name } = region;
      fields.set(field, reflect(RegionKeySchema, create(RegionKeySchema, { platform, name })));
    } else if (isRegionText(field)) {
      fields.set(field, region.label);
    }
  }
  return stamped;
}

function isRegionKey(field: DescField): boolean {
  return field.fieldKind === "message" && field.message.typeName === RegionKeySchema.typeName;
}

function isRegionText(field: DescField): boolean {
  return field.fieldKind === "scalar" && field.name === "region";
}
