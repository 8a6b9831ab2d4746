// Serves RPC services as routes of an HTTP port: Connect, gRPC and gRPC-Web on the same paths. It replaces Connect's own
// Node adapter, which prints failures to the console and does not report them to its caller.
//
// No part of a body is read before the call has passed the gate of its service.
import type { Writable } from "node:stream";
import {
  ConnectError,
  type ConnectRouter,
  type ConnectRouterOptions,
  createConnectRouter,
  createContextValues,
  type Interceptor,
} from "@connectrpc/connect";
import { encodeEnvelope } from "@connectrpc/connect/protocol";
import {
  codeToHttpStatus,
  endStreamFlag,
  endStreamToJson,
  errorToJsonBytes,
} from "@connectrpc/connect/protocol-connect";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import {
  compressionBrotli,
  compressionGzip,
  universalRequestFromNodeRequest,
  universalResponseToNodeResponse,
} from "@connectrpc/connect-node";
import type { HttpHandler, HttpRequest, HttpResponse } from "../http/http-handler.ts";
import { admitCall, type IncomingCall, type PortInterceptor, peerAddress } from "./call-admission.ts";
import { CallBudget, type CallCharge } from "./call-budget.ts";

type RpcHandler = ConnectRouter["handlers"][number];

/** Default for services that set no limit. */
const messageBytesMax = 4 * 1024 * 1024;

/**
 * Returns the handlers by path for the services that `register` adds to the router. Admissions among the interceptors
 * run before the body of a call is read; see call-admission.ts.
 */
export function rpcRoutes(register: (router: ConnectRouter) => void): ReadonlyMap<string, HttpHandler> {
  const acceptCompression = [compressionGzip, compressionBrotli];
  const router = createConnectRouter({ acceptCompression, readMaxBytes: messageBytesMax });
  const routes = new Map<string, HttpHandler>();
  const mountNew = ({ interceptors = [], readMaxBytes = messageBytesMax }: ConnectRouterOptions = {}) => {
    const gate = new CallGate({ interceptors, messageBytesMax: readMaxBytes });
    for (const handler of router.handlers.slice(routes.size))
      routes.set(handler.requestPath, (request, response) => serveCall(handler, gate, request, response));
  };
  const mounting: ConnectRouter = {
    handlers: router.handlers,
    service(service, implementation, options) {
      router.service(service, implementation, options);
      mountNew(options);
      return mounting;
    },
    rpc(method, implementation, options) {
      router.rpc(method, implementation, options);
      mountNew(options);
      return mounting;
    },
  };
  register(mounting);
  return routes;
}

async function serveCall(
  handler: RpcHandler,
  gate: CallGate,
  request: HttpRequest,
  response: HttpResponse,
): Promise<void> {
  const peer = request.socket.remoteAddress ?? "";
  const values = createContextValues().set(peerAddress, peer);
  const received = universalRequestFromNodeRequest(request, response, undefined, values);
  const { header, signal = new AbortController().signal } = received;
  const call = { method: handler.method, header, peer, values, signal };
  try {
    const charge = await gate.pass(call);
    if (charge instanceof ConnectError) return refuseCall(request, response, charge);
    if (response.destroyed) return charge.release();
    response.once("close", charge.release);
    const result = await handler({ ...received, body: chargedBody(request, charge) });
    await universalResponseToNodeResponse(result, response);
  } catch (error) {
    // A client that disconnects before it has its response is normal.
    if (!signal.aborted && !response.destroyed) throw error;
  }
}

async function* chargedBody(request: HttpRequest, charge: CallCharge): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  try {
    // The reader may stop early and still send a response, so the request and its connection must stay open.
    for await (const chunk of request.iterator({ destroyOnReturn: false })) {
      bytes += chunk.length;
      charge.raiseTo(bytes);
      yield chunk;
    }
  } finally {
    // Discards the rest: unread, it would block the next request on the connection.
    request.resume();
  }
}

interface Refusal {
  readonly status: number;
  readonly header: Headers;
  readonly body: Uint8Array;
}

/**
 * Responds to a rejected call in its own protocol, without reading the body: node:http2 tells the client to stop sending
 * it, and node:http discards it, so that the connection stays usable.
 */
function refuseCall(request: HttpRequest, response: HttpResponse, error: ConnectError): void {
  const { status, header, body } = refusalOf(request.headers["content-type"] ?? "", error);
  response.statusCode = status;
  for (const [name, value] of header) response.setHeader(name, value);
  const output: Writable = response;
  if (body.length > 0) output.end(body);
  else output.end();
}

function refusalOf(contentType: string, error: ConnectError): Refusal {
  const [type = ""] = /^application\/(?:grpc|connect\+)[-+a-z]*/i.exec(contentType) ?? [];
  const header = new Headers({ "content-type": type });
  if (/^application\/grpc/i.test(type)) {
    // "Trailers-Only": gRPC and gRPC-Web accept the status in the headers of a response without a body.
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

/**
 * Decides whether the body of a call is read: the memory budget must have room for it, and every admission among the
 * service's interceptors must pass.
 */
export class CallGate {
  private readonly interceptors: readonly PortInterceptor[];
  private readonly budget: CallBudget;

  constructor(options: { readonly interceptors: readonly Interceptor[]; readonly messageBytesMax: number }) {
    this.interceptors = options.interceptors;
    this.budget = new CallBudget(options.messageBytesMax);
  }

  /** Returns the charge of an admitted call, which the caller must release when it ends, or the error for the client. */
  async pass(call: IncomingCall): Promise<CallCharge | ConnectError> {
    try {
      return await this.admit(call);
    } catch (error) {
      const mapped = this.mapError(error, call);
      if (!(mapped instanceof ConnectError)) throw mapped;
      for (const { onRefused } of this.interceptors) onRefused?.(call, mapped);
      return mapped;
    }
  }

  private async admit(call: IncomingCall): Promise<CallCharge> {
    const charge = this.budget.begin(call.peer);
    try {
      await admitCall(this.interceptors, call);
      charge.raiseTo(announcedBytes(call.header));
      return charge;
    } catch (error) {
      charge.release();
      throw error;
    }
  }

  /** Maps the error as if it passed through the interceptors, innermost first. */
  private mapError(error: unknown, call: IncomingCall): unknown {
    return this.interceptors.reduceRight((mapped, each) => each.mapError?.(mapped, call) ?? mapped, error);
  }
}

/**
 * The size that the message may have in memory, judged by the headers. Connect allocates the announced size in advance,
 * and a compressed message may expand to any size.
 */
function announcedBytes(header: Headers): number {
  const encodings = ["content-encoding", "connect-content-encoding", "grpc-encoding"];
  const isCompressed = encodings.some((name) => (header.get(name) ?? "identity") !== "identity");
  if (isCompressed) return Number.POSITIVE_INFINITY;
  const announced = Number(header.get("content-length") ?? 0);
  return Number.isNaN(announced) ? 0 : announced;
}
