// A whole cluster in memory for the controllers' tests: server, fixture and controllers on
// a clock that the test moves.
import type { Pod } from "kubernetes-types/core/v1.js";
import { createApiServer } from "../../src/api-server.ts";
import type { Clock } from "../../src/clock.ts";
import { createNodes } from "../../src/controllers/nodes.ts";
import {
  type ControllersOptions,
  type RunningControllers,
  startControllers,
} from "../../src/controllers/start-controllers.ts";
import { createHandler } from "../../src/handler.ts";
import type { ApiRequest, WholeResponse } from "../../src/request.ts";
import { createSeededRandom } from "../../src/testing.ts";
import { pooledNodes } from "./pooled-nodes.ts";

export interface TestCluster extends RunningControllers {
  /** Everything in the store, as text, for comparing whole runs. */
  dump(): string;
  request(method: ApiRequest["method"], path: string, body?: unknown): Promise<WholeResponse>;
  /** Ends every open watch, as a restarting server would. */
  closeWatches(): void;
  /** Fails unless the server agrees. */
  must<T>(method: ApiRequest["method"], path: string, body?: unknown): Promise<T>;
  pods(namespace: string): Promise<Pod[]>;
  stop(): Promise<void>;
}

const runtimeClass = {
  apiVersion: "node.k8s.io/v1",
  kind: "RuntimeClass",
  metadata: { name: "gvisor" },
  handler: "runsc",
};

export async function startTestCluster(
  clock: Clock,
  options: ControllersOptions & { readonly seed?: number } = {},
): Promise<TestCluster> {
  const random = createSeededRandom(options.seed ?? 1);
  const server = createApiServer({ clock, random });
  const handler = createHandler(server);
  const stopping = new AbortController();
  const request: TestCluster["request"] = async (method, path, body) => {
    const content = body === undefined ? {} : { body, contentType: "application/json" };
    const answer = await handler({ method, path, ...content }, new AbortController().signal);
    if (answer.kind === "whole") return answer;
    throw new Error(`${path} answered with a stream`);
  };
  const must = async <T>(method: ApiRequest["method"], path: string, body?: unknown): Promise<T> => {
    const answer = await request(method, path, body);
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${JSON.stringify(answer.body)}`);
    return answer.body as T;
  };
  await must("POST", "/apis/node.k8s.io/v1/runtimeclasses", runtimeClass);
  await createNodes(handler, stopping.signal, pooledNodes);
  const controllers = startControllers(handler, options, { clock, random }, stopping.signal);
  return {
    ...controllers,
    dump: () => JSON.stringify(server.registry.all().map(({ kind }) => server.store.list(kind))),
    closeWatches: () => server.faults.closeWatches(),
    request,
    must,
    pods: async (namespace) =>
      (await must<{ items: Pod[] }>("GET", `/api/v1/namespaces/${namespace}/pods`)).items,
    async stop() {
      stopping.abort();
      await controllers.done;
      server.stop();
    },
  };
}

const zoneKey = "topology.kubernetes.io/zone";

/** A template for the pool of untrusted code, spread over the zones. */
export function untrustedTemplate(labels: Record<string, string>, image = "app:1"): Record<string, unknown> {
  return {
    metadata: { labels },
    spec: {
      runtimeClassName: "gvisor",
      automountServiceAccountToken: false,
      tolerations: [
        { key: "karpenter.sh/nodepool", operator: "Equal", value: "untrusted", effect: "NoSchedule" },
      ],
      topologySpreadConstraints: [
        {
          maxSkew: 1,
          topologyKey: zoneKey,
          whenUnsatisfiable: "ScheduleAnyway",
          labelSelector: { matchLabels: labels },
        },
      ],
      containers: [{ name: "app", image, ports: [{ containerPort: 8080 }] }],
    },
  };
}

export function replicaSet(name: string, replicas: number, image = "app:1"): Record<string, unknown> {
  const labels = { app: name };
  return {
    metadata: { name },
    spec: { replicas, selector: { matchLabels: labels }, template: untrustedTemplate(labels, image) },
  };
}

export function deployment(
  name: string,
  replicas: number,
  image = "app:1",
  spec: Record<string, unknown> = {},
): Record<string, unknown> {
  const labels = { app: name };
  return {
    metadata: { name },
    spec: {
      replicas,
      selector: { matchLabels: labels },
      template: untrustedTemplate(labels, image),
      ...spec,
    },
  };
}
