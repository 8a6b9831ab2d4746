// Adds a span to every request to the API server, except watches. It records the target and the status, and nothing of
// the request or response body (K7).

import { spanCatalogue } from "../telemetry/span-catalogue.ts";
import type { Spans } from "../telemetry/spans.ts";
import type { KubeRequest, KubeTransport } from "./transport.ts";

/** Returns the transport itself when tracing is off. */
export function tracedTransport(transport: KubeTransport, spans: Spans | undefined): KubeTransport {
  if (spans === undefined) return transport;
  return {
    send(request, signal) {
      const { verb, resource, namespace, name } = requestTarget(request);
      const attributes = {
        "k8s.verb": verb,
        "k8s.resource": resource,
        "k8s.namespace": namespace,
        "k8s.name": name,
      };
      const start = { subject: `${verb} ${resource}`, attributes };
      return spans.withSpan(spanCatalogue.kubernetesRequest, start, async (span) => {
        const answer = await transport.send(request, signal);
        const { status } = answer;
        span.set({ "http.response.status_code": status });
        // Not found is a normal response, and often the expected one.
        if (status >= 400 && status !== 404) span.fail(String(status));
        return answer;
      });
    },
    stream: (request, signal) => transport.stream(request, signal),
    close: () => transport.close(),
  };
}

export interface RequestTarget {
  readonly verb: string;
  readonly resource: string;
  readonly namespace: string | undefined;
  readonly name: string | undefined;
}

const verbs = { POST: "create", PUT: "update", PATCH: "patch", DELETE: "delete" } as const;

/** Parses a path that paths.ts built. */
export function requestTarget({ method, path }: Pick<KubeRequest, "method" | "path">): RequestTarget {
  const [, root, ...parts] = path.split("/");
  const below = parts.slice(root === "api" ? 1 : 2);
  // "namespaces/a" is an object, and "namespaces/a/pods" a collection within it.
  const isNamespaced = below[0] === "namespaces" && below.length > 2;
  const [resource = "", name] = isNamespaced ? below.slice(2) : below;
  const verb = method === "GET" ? (name === undefined ? "list" : "get") : verbs[method];
  return { verb, resource, namespace: isNamespaced ? below[1] : undefined, name };
}
