// A request's body, read up to a limit and parsed.
import type { IncomingMessage } from "node:http";
import { badRequest, StatusError } from "./status-error.ts";

export type Body =
  | { readonly kind: "read"; readonly value: unknown }
  | { readonly kind: "refused"; readonly error: StatusError };

export async function readBody(
  incoming: IncomingMessage,
  contentType: string,
  bytesMax: number,
): Promise<Body> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of incoming as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (bytes > bytesMax) {
      const message = `Request entity too large: limit is ${bytesMax}`;
      return { kind: "refused", error: new StatusError(413, "RequestEntityTooLarge", message) };
    }
    parts.push(part);
  }
  if (bytes > 0 && !isUnderstood(contentType)) {
    const message =
      "the body of the request was in an unknown format - accepted media types include: application/json";
    return { kind: "refused", error: new StatusError(415, "UnsupportedMediaType", message) };
  }
  const text = Buffer.concat(parts).toString();
  return text === "" ? { kind: "read", value: undefined } : parse(text, contentType);
}

// Typed clients of recent kubectl write protobuf (create namespace, auth can-i). No answer
// makes them fall back: of a 415 they learn only for CBOR, and they do not ask discovery.
function isUnderstood(contentType: string): boolean {
  return !/protobuf|cbor/.test(contentType);
}

// Apply patches are YAML by name; clients send the JSON part of it, and so must they here.
function parse(text: string, contentType: string): Body {
  try {
    return { kind: "read", value: JSON.parse(text) };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    const subject = contentType.includes("yaml")
      ? "error decoding YAML: only JSON is understood"
      : "the object provided is unrecognized: couldn't get version/kind; json parse error";
    return { kind: "refused", error: badRequest(`${subject}: ${why}`) };
  }
}
