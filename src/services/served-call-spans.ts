// A span for every unary call that a service answers. Calls that are refused at the gate have none: whoever reaches
// the port could fill the queue of spans with them.
import type { DescMethod } from "@bufbuild/protobuf";
import type { ConnectRouter, Interceptor } from "@connectrpc/connect";
import { noteCode, rpcCode, rpcNames } from "../control-plane/call-spans.ts";
import { spanCatalogue } from "../telemetry/span-catalogue.ts";
import type { Spans } from "../telemetry/spans.ts";

/** Whether whoever calls the method has shown a token by the time that it is answered. */
export type KnowsCaller = (method: DescMethod) => boolean;

/** A router that gives whatever is put into it spans, or the same one without tracing. */
export function tracedRouter(
  router: ConnectRouter,
  spans: Spans | undefined,
  knowsCaller: KnowsCaller,
): ConnectRouter {
  if (spans === undefined) return router;
  const first = createServedCallSpans(spans, knowsCaller);
  // Outermost, so that it sees the error that goes out.
  const traced = <O extends { readonly interceptors?: Interceptor[] }>(options: O | undefined) => ({
    ...options,
    interceptors: [first, ...(options?.interceptors ?? [])],
  });
  const tracing: ConnectRouter = {
    handlers: router.handlers,
    service(service, implementation, options) {
      router.service(service, implementation, traced(options));
      return tracing;
    },
    rpc(method, implementation, options) {
      router.rpc(method, implementation, traced(options));
      return tracing;
    },
  };
  return tracing;
}

function createServedCallSpans(spans: Spans, knowsCaller: KnowsCaller): Interceptor {
  return (next) => (request) => {
    if (request.stream) return next(request);
    const { method, header } = request;
    // A stranger's header would choose which traces are kept, and put spans into those of others.
    const traceparent = knowsCaller(method) ? (header.get("traceparent") ?? undefined) : undefined;
    const subject = `${method.parent.typeName}/${method.name}`;
    const start = { subject, attributes: rpcNames(method), traceparent };
    return spans.withSpan(spanCatalogue.servedCall, start, (span) => noteCode(span, next(request), rpcCode));
  };
}
