// Runs a cluster inside this process: the embedded API server on a loopback port with its controllers, and a
// kubeconfig for kubectl and the agent. stop() removes all of it.

import {
  type ApiServer,
  administrator,
  createApiServer,
  createHandler,
  type HttpServerHandle,
  type PodBehaviour,
  startControllers,
  startHttpServer,
} from "@krane/kube-apiserver";
import type { Clock } from "../concurrency/clock.ts";
import type { Random } from "../concurrency/random.ts";
import { explainListenFailure } from "../http/service-error.ts";
import { createKubeApi } from "../kube/client.ts";
import { customResourceDefinitions } from "../kube/resources.ts";
import { ciliumDefinition } from "./cilium-definition.ts";
import { createFixture } from "./cluster-fixture.ts";
import type { DevCluster } from "./dev-cluster.ts";
import { DevError } from "./dev-error.ts";
import { createInProcessTransport } from "./in-process-transport.ts";
import { devNamespace } from "./scenario.ts";

export interface EmbeddedClusterOptions {
  readonly port: number;
  /** Where the kubeconfig is written; removed by stop(). */
  readonly kubeconfigPath: string;
  readonly behaviour?: Partial<PodBehaviour>;
}

export interface EmbeddedClusterDeps {
  readonly clock: Clock;
  readonly random: Random;
  /** Creates missing folders. */
  writeTextFile(path: string, text: string): Promise<void>;
  removeFile(path: string): Promise<void>;
}

export async function startEmbeddedCluster(
  options: EmbeddedClusterOptions,
  deps: EmbeddedClusterDeps,
  signal: AbortSignal,
): Promise<DevCluster> {
  const server = createApiServer(deps);
  try {
    return await openCluster(server, options, deps, signal);
  } catch (error) {
    server.stop();
    throw error;
  }
}

async function openCluster(
  server: ApiServer,
  { port, kubeconfigPath, behaviour }: EmbeddedClusterOptions,
  deps: EmbeddedClusterDeps,
  signal: AbortSignal,
): Promise<DevCluster> {
  const transport = createInProcessTransport(server, { userAgent: "krane-dev" });
  const api = createKubeApi(transport);
  await api.create(customResourceDefinitions, ciliumDefinition, {}, signal);
  const handler = createHandler(server, { userAgent: "krane-dev" });
  await createFixture(handler, signal);
  const http = await listen(server, port);
  try {
    await deps.writeTextFile(kubeconfigPath, kubeconfigText(http.url));
  } catch (cause) {
    await http.stop();
    const reason = cause instanceof Error ? cause.message : String(cause);
    const advice = "choose another path with --write-kubeconfig";
    throw new DevError("file_unusable", `cannot write ${kubeconfigPath}: ${reason}; ${advice}`, { cause });
  }
  const stopping = new AbortController();
  const controllers = startControllers(handler, { ...(behaviour && { behaviour }) }, deps, stopping.signal);
  return {
    api,
    url: http.url,
    kubeconfigPath,
    behaviours: controllers.behaviours,
    async stop() {
      await deps.removeFile(kubeconfigPath);
      await http.stop();
      stopping.abort();
      await controllers.done;
      await transport.close();
      server.stop();
    },
  };
}

async function listen(server: ApiServer, port: number): Promise<HttpServerHandle> {
  try {
    // kubectl sends no token over plain HTTP, so every connection is accepted: the port is only open on this
    // machine, and these pods do not run anything.
    return await startHttpServer(server, { port, anonymous: administrator });
  } catch (cause) {
    throw explainListenFailure({ setting: "--kube-port", port }, cause as NodeJS.ErrnoException);
  }
}

/** JSON is valid YAML. */
function kubeconfigText(server: string): string {
  const name = "krane-dev";
  const config = {
    apiVersion: "v1",
    kind: "Config",
    "current-context": name,
    contexts: [{ name, context: { cluster: name, user: name, namespace: devNamespace } }],
    clusters: [{ name, cluster: { server } }],
    users: [{ name, user: {} }],
  };
  return `${JSON.stringify(config, undefined, 2)}\n`;
}
