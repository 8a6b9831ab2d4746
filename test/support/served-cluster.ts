// The embedded Kubernetes API server on a port of this machine, for agents that are to
// find a cluster as they would anywhere: through a kubeconfig and HTTP.

import {
  type ApiServer,
  administrator,
  createApiServer,
  createHandler,
  type PodBehaviours,
  startControllers,
  startHttpServer,
} from "@krane/kube-apiserver";
import { createSystemClock } from "../../src/concurrency/clock.ts";
import { createSeededRandom } from "../../src/concurrency/random.ts";
import { ciliumDefinition } from "../../src/dev/cilium-definition.ts";
import { createFixture } from "../../src/dev/cluster-fixture.ts";
import { createInProcessTransport } from "../../src/dev/in-process-transport.ts";
import type { KubeApi } from "../../src/kube/api.ts";
import { createKubeApi } from "../../src/kube/client.ts";
import { customResourceDefinitions } from "../../src/kube/resources.ts";

export interface ServedCluster {
  readonly server: ApiServer;
  /** As the administrator, without a socket. */
  readonly api: KubeApi;
  readonly url: string;
  /** How its pods behave. */
  readonly behaviours: PodBehaviours;
  /** The text of a kubeconfig that leads here. */
  readonly kubeconfig: string;
  stop(): Promise<void>;
}

/** What its administrator sends. */
export const servedClusterToken = "of-the-served-cluster";
const never = new AbortController().signal;

/** Has nodes, makes pods out of ReplicaSets within milliseconds, and knows Cilium's policies unless told otherwise. */
export async function serveCluster({ withoutCilium = false } = {}): Promise<ServedCluster> {
  const deps = { clock: createSystemClock(), random: createSeededRandom(1) };
  const server = createApiServer(deps, { staticTokens: new Map([[servedClusterToken, administrator]]) });
  const transport = createInProcessTransport(server, { userAgent: "kubectl" });
  const api = createKubeApi(transport);
  if (!withoutCilium) await api.create(customResourceDefinitions, ciliumDefinition, {}, never);
  const handler = createHandler(server, { userAgent: "kubectl" });
  await createFixture(handler, never);
  const stopping = new AbortController();
  const behaviour = { pullMs: 0, startMs: 0, readyMs: 0, stopMs: 0 };
  const controllers = startControllers(handler, { behaviour }, deps, stopping.signal);
  const http = await startHttpServer(server);
  return {
    server,
    api,
    url: http.url,
    behaviours: controllers.behaviours,
    kubeconfig: kubeconfigFor(http.url),
    async stop() {
      await http.stop();
      stopping.abort();
      await controllers.done;
      server.stop();
    },
  };
}

/** JSON is YAML as well. */
export function kubeconfigFor(server: string): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    "current-context": "test",
    contexts: [{ name: "test", context: { cluster: "test", user: "test" } }],
    clusters: [{ name: "test", cluster: { server } }],
    users: [{ name: "test", user: { token: servedClusterToken } }],
  });
}
