// Wraps the Kubernetes API of one controller, or of the secrets service, with request metrics. Every request goes
// through here, so the metrics show the real load on the API server.
import type { Clock } from "../concurrency/clock.ts";
import type { KubeApi } from "../kube/api.ts";
import type { ResourceKind } from "../kube/types.ts";
import type { Metrics } from "../telemetry/metrics.ts";

type Verb = "get" | "list" | "watch" | "create" | "patch" | "delete";

export interface MeteredDeps {
  readonly clock: Clock;
  readonly metrics: Pick<Metrics, "kubernetesRequests" | "kubernetesDuration">;
}

export function createMeteredKubeApi(api: KubeApi, controller: string, deps: MeteredDeps): KubeApi {
  const { clock, metrics } = deps;

  async function measured<T>(verb: Verb, { kind }: ResourceKind, call: () => Promise<T>): Promise<T> {
    const resource = kind.toLowerCase();
    const startedMs = clock.nowMs();
    let result: "success" | "error" = "error";
    try {
      const value = await call();
      result = "success";
      return value;
    } finally {
      metrics.kubernetesRequests.inc({ controller, verb, resource, result });
      metrics.kubernetesDuration.observe({ controller, verb, resource }, (clock.nowMs() - startedMs) / 1_000);
    }
  }

  return {
    get: (kind, ref, options, signal) => measured("get", kind, () => api.get(kind, ref, options, signal)),
    list: (kind, options, signal) => measured("list", kind, () => api.list(kind, options, signal)),
    // The server decides how long a watch lasts, so its duration is not measured.
    watch(kind, options, signal) {
      const resource = kind.kind.toLowerCase();
      metrics.kubernetesRequests.inc({ controller, verb: "watch", resource, result: "success" });
      return api.watch(kind, options, signal);
    },
    apply: (kind, manifest, options, signal) =>
      measured("patch", kind, () => api.apply(kind, manifest, options, signal)),
    patch: (kind, object, operations, options, signal) =>
      measured("patch", kind, () => api.patch(kind, object, operations, options, signal)),
    delete: (kind, ref, options, signal) =>
      measured("delete", kind, () => api.delete(kind, ref, options, signal)),
    create: (kind, object, options, signal) =>
      measured("create", kind, () => api.create(kind, object, options, signal)),
  };
}
