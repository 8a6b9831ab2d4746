// Adds a span to every unary call to the control plane or to a vault, and sends its context, so that the server can
// continue the trace.
import type { DescMethod } from "@bufbuild/protobuf";
import { ConnectError, type Interceptor } from "@connectrpc/connect";
import { DeadlineError } from "../concurrency/abort.ts";
import type { spanCatalogue } from "../telemetry/span-catalogue.ts";
import type { OpenSpan, Spans } from "../telemetry/spans.ts";
import { codeNames } from "./error.ts";

type CallDefinition = typeof spanCatalogue.controlPlaneCall | typeof spanCatalogue.vaultCall;

/** Must come before all other interceptors, because their work is part of the call. Empty when tracing is off. */
export function createCallSpans(
  spans: Spans | undefined,
  definition: CallDefinition,
): readonly Interceptor[] {
  if (spans === undefined) return [];
  const interceptor: Interceptor = (next) => (request) => {
    if (request.stream) return next(request);
    const { method, header, signal } = request;
    const codeOf = (error: unknown) => (signal.aborted ? abortCode(signal) : rpcCode(error));
    const start = { subject: method.name, attributes: rpcNames(method) };
    return spans.withSpan(definition, start, (span) => {
      header.set("traceparent", span.traceparent);
      return noteCode(span, next(request), codeOf);
    });
  };
  return [interceptor];
}

/** A deadline or the caller ended the call. The library's own code depends on what was going on at that moment. */
function abortCode({ reason }: AbortSignal) {
  return reason instanceof DeadlineError ? "deadline_exceeded" : "canceled";
}

/** Records the code of the call on the span, and nothing else, because a server may quote the request (K7). */
export async function noteCode<T>(
  span: OpenSpan<CallDefinition>,
  answer: Promise<T>,
  codeOf: (error: unknown) => string,
): Promise<T> {
  try {
    const response = await answer;
    span.set({ "rpc.code": "ok" });
    return response;
  } catch (error) {
    const code = codeOf(error);
    span.set({ "rpc.code": code });
    span.fail(code);
    throw error;
  }
}

export function rpcNames({ parent, name }: DescMethod) {
  return { "rpc.service": parent.typeName, "rpc.method": name };
}

export function rpcCode(error: unknown) {
  return codeNames[ConnectError.from(error).code];
}
