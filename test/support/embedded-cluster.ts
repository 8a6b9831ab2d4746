// A whole cluster in memory for the controllers' tests: server, fixture and controllers on
// a clock that the test moves.
import type { Pod } from "kubernetes-types/core/v1.js";
import type { Clock } from "../../src/concurrency/clock.ts";
import { createSeededRandom } from "../../src/concurrency/random.ts";
import { createApiServer } from "../../src/dev/kube-apiserver/api-server.ts";
import { createFixture } from "../../src/dev/kube-apiserver/controllers/cluster-fixture.ts";
import {
  type ControllersOptions,
  type RunningControllers,
  startControllers,
} from "../../src/dev/kube-apiserver/controllers/start-controllers.ts";
import { createInProcessTransport } from "../../src/dev/kube-apiserver/in-process.ts";
import type { KubeRequest } from "../../src/kube/transport.ts";

export interface TestCluster extends RunningControllers {
  /** Everything in the store, as text, for comparing whole runs. */
  dump(): string;
  request(
    method: KubeRequest["method"],
    path: string,
    body?: unknown,
  ): Promise<{ status: number; body: unknown }>;
  /** Ends every open watch, as a restarting server would. */
  closeWatches(): void;
  /** Fails unless the server agrees. */
  must<T>(method: KubeRequest["method"], path: string, body?: unknown): Promise<T>;
  pods(namespace: string): Promise<Pod[]>;
  stop(): Promise<void>;
}

export async function startTestCluster(
  clock: Clock,
  options: ControllersOptions & { readonly seed?: number } = {},
): Promise<TestCluster> {
  const random = createSeededRandom(options.seed ?? 1);
  const server = createApiServer({ clock, random });
  const transport = createInProcessTransport(server);
  const stopping = new AbortController();
  await createFixture(transport, stopping.signal);
  const controllers = startControllers(transport, options, { clock, random }, stopping.signal);
  const request: TestCluster["request"] = (method, path, body) => {
    const content = body === undefined ? {} : { body, contentType: "application/json" };
    return transport.send({ method, path, ...content }, new AbortController().signal);
  };
  const must = async <T>(method: KubeRequest["method"], path: string, body?: unknown): Promise<T> => {
    const answer = await request(method, path, body);
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${JSON.stringify(answer.body)}`);
    return answer.body as T;
  };
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
      await transport.close();
    },
  };
}

const zoneKey = "topology.kubernetes.io/zone";

/** A template as krane writes it: untrusted, spread over the zones. */
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
