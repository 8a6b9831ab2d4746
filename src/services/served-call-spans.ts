// Records a span for every unary call that a service handles. Calls that are rejected at the gate get none, because
// anyone who can reach the port could fill the span queue with them.
import type { DescMethod } from "@bufbuild/protobuf";
import type { ConnectRouter, Interceptor } from "@connectrpc/connect";
import { noteCode, rpcCode, rpcNames } from "../control-plane/call-spans.ts";
import { spanCatalogue } from "../telemetry/span-catalogue.ts";
import type { Spans } from "../telemetry/spans.ts";

/** Whether the callers of a method are authenticated before it runs. */
export type KnowsCaller = (method: DescMethod) => boolean;

/** Wraps a router so that its services record spans. Returns the router itself when tracing is off. */
export function tracedRouter(
  router: ConnectRouter,
  spans: Spans | undefined,
  knowsCaller: KnowsCaller,
): ConnectRouter {
  return spans === undefined
    ? router
    : withFirstInterceptor(router, createServedCallSpans(spans, knowsCaller));
}

/** Wraps a router so that its services have one more interceptor: the outermost, which sees the final error. */
export function withFirstInterceptor(router: ConnectRouter, first: Interceptor): ConnectRouter {
  const withFirst = <O extends { readonly interceptors?: Interceptor[] }>(options: O | undefined) => ({
    ...options,
    interceptors: [first, ...(options?.interceptors ?? [])],
  });
  const wrapped: ConnectRouter = {
    handlers: router.handlers,
    service(service, implementation, options) {
      router.service(service, implementation, withFirst(options));
      return wrapped;
    },
    rpc(method, implementation, options) {
      router.rpc(method, implementation, withFirst(options));
      return wrapped;
    },
  };
  return wrapped;
}

function createServedCallSpans(spans: Spans, knowsCaller: KnowsCaller): Interceptor {
  return (next) => (request) => {
    if (request.stream) return next(request);
    const { method, header } = request;
    // An unauthenticated caller must not choose which traces are kept, nor add spans to the traces of others.
    const traceparent = knowsCaller(method) ? (header.get("traceparent") ?? undefined) : undefined;
    const subject = `${method.parent.typeName}/${method.name}`;
    const start = { subject, attributes: rpcNames(method), traceparent };
    return spans.withSpan(spanCatalogue.servedCall, start, (span) => noteCode(span, next(request), rpcCode));
  };
}
