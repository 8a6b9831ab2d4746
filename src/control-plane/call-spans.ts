// A span for every unary call that krane makes, to the control plane or to a vault. Who answers can continue the
// trace.
import type { DescMethod } from "@bufbuild/protobuf";
import { ConnectError, type Interceptor } from "@connectrpc/connect";
import { DeadlineError } from "../concurrency/abort.ts";
import type { spanCatalogue } from "../telemetry/span-catalogue.ts";
import type { OpenSpan, Spans } from "../telemetry/spans.ts";
import { codeNames } from "./error.ts";

type CallDefinition = typeof spanCatalogue.controlPlaneCall | typeof spanCatalogue.vaultCall;

/** Belongs before all other interceptors, whose work is part of the call; none without tracing. */
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

/** Who gave up. The library's own codes differ with what was going on at that moment. */
function abortCode({ reason }: AbortSignal) {
  return reason instanceof DeadlineError ? "deadline_exceeded" : "canceled";
}

/** Tells the span how the call ended: by a code alone, because a server may quote what it was sent (K7). */
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
