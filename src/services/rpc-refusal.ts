// The answer to a call whose body nobody reads, in the words of its protocol. The body is left where it is:
// node:http2 tells the client to stop sending it, and node:http throws it away as it comes, so that the
// connection stays of use.
import type { Writable } from "node:stream";
import type { ConnectError } from "@connectrpc/connect";
import { encodeEnvelope } from "@connectrpc/connect/protocol";
import {
  codeToHttpStatus,
  endStreamFlag,
  endStreamToJson,
  errorToJsonBytes,
} from "@connectrpc/connect/protocol-connect";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import type { HttpRequest, HttpResponse } from "../http/http-handler.ts";

interface Refusal {
  readonly status: number;
  readonly header: Headers;
  readonly body: Uint8Array;
}

export function refuseCall(request: HttpRequest, response: HttpResponse, error: ConnectError): void {
  const { status, header, body } = refusalOf(request.headers["content-type"] ?? "", error);
  response.statusCode = status;
  for (const [name, value] of header) response.setHeader(name, value);
  const answer: Writable = response;
  if (body.length > 0) answer.end(body);
  else answer.end();
}

function refusalOf(contentType: string, error: ConnectError): Refusal {
  const [type = ""] = /^application\/(?:grpc|connect\+)[-+a-z]*/i.exec(contentType) ?? [];
  const header = new Headers({ "content-type": type });
  if (/^application\/grpc/i.test(type)) {
    // "Trailers-Only": both gRPC and gRPC-Web take the status in the headers of an answer that has no body.
    return { status: 200, header: setTrailerStatus(header, error), body: new Uint8Array() };
  }
  if (type !== "") {
    const end = JSON.stringify(endStreamToJson(new Headers(), error, undefined));
    return { status: 200, header, body: encodeEnvelope(endStreamFlag, new TextEncoder().encode(end)) };
  }
  const body = errorToJsonBytes(error, undefined);
  for (const [name, value] of error.metadata) header.set(name, value);
  header.set("content-type", "application/json");
  header.set("content-length", String(body.length));
  return { status: codeToHttpStatus(error.code), header, body };
}
