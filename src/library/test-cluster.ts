// An in-process Kubernetes cluster for tests: the embedded API server with nodes, Cilium's policies, and the controllers
// that create pods from ReplicaSets. It runs no images, listens on a port only after serve(), and leaves nothing behind
// after stop().
import {
  type ApiServer,
  type ApiServerOptions,
  administrator,
  createApiServer,
  createHandler,
  type HttpServerHandle,
  startControllers,
  startHttpServer,
} from "@krane/kube-apiserver";
import { type Clock, sleep } from "../concurrency/clock.ts";
import { ciliumDefinition } from "../dev/cilium-definition.ts";
import { createFixture } from "../dev/cluster-fixture.ts";
import { createInProcessTransport } from "../dev/in-process-transport.ts";
import type { KubeApi } from "../kube/api.ts";
import { createKubeApi } from "../kube/client.ts";
import * as known from "../kube/resources.ts";
import type { KubeObject, ResourceKind } from "../kube/types.ts";
import { completeHostDeps, type HostDeps } from "./host-deps.ts";

export interface TestClusterOptions extends ApiServerOptions {
  /** How long the phases of a pod take. Default: 0. */
  readonly pods?: {
    readonly pullMs?: number;
    readonly startMs?: number;
    readonly readyMs?: number;
    readonly stopMs?: number;
  };
  /** Leaves out Cilium's kinds. Default false. */
  readonly withoutCilium?: boolean;
}

export interface TestCluster {
  /** Use its faults to make it fail, and its tokens to add callers. */
  readonly server: ApiServer;
  /** As the administrator. */
  readonly api: KubeApi;
  /** Connects a client without a socket, with the given user agent. */
  connect(userAgent: string): { readonly api: KubeApi; close(): Promise<void> };
  /** Opens a port on 127.0.0.1 where every caller is the administrator, for kubectl and for whole agents. */
  serve(port?: number): Promise<HttpServerHandle>;
  stop(): Promise<void>;
}

// A new resource definition is accepted immediately, but served a moment later.
const pollEveryMs = 1;
const instantPods = { pullMs: 0, startMs: 0, readyMs: 0, stopMs: 0 };

export async function startTestCluster(
  options: TestClusterOptions = {},
  hostDeps: HostDeps = {},
  signal: AbortSignal = new AbortController().signal,
): Promise<TestCluster> {
  const { pods, withoutCilium = false, ...serverOptions } = options;
  const deps = completeHostDeps(hostDeps);
  const server = createApiServer(deps, serverOptions);
  const transport = createInProcessTransport(server, { userAgent: "kubectl" });
  const api = createKubeApi(transport);
  if (!withoutCilium) await installCilium(server, api, deps.clock, signal);
  const handler = createHandler(server, { userAgent: "kubectl" });
  await createFixture(handler, signal);
  const stopping = new AbortController();
  const behaviour = { ...instantPods, ...pods };
  const controllers = startControllers(handler, { behaviour }, deps, stopping.signal);
  const ports: HttpServerHandle[] = [];
  return {
    server,
    api,
    connect(userAgent) {
      const own = createInProcessTransport(server, { userAgent });
      return { api: createKubeApi(own), close: () => own.close() };
    },
    async serve(port = 0) {
      const opened = await startHttpServer(server, { port, anonymous: administrator });
      ports.push(opened);
      return opened;
    },
    async stop() {
      await Promise.all(ports.map((opened) => opened.stop()));
      stopping.abort();
      await controllers.done;
      await transport.close();
      server.stop();
    },
  };
}

/** Waits until the kind is served: a controller that starts earlier would treat the cluster as one without Cilium. */
async function installCilium(
  { registry }: ApiServer,
  api: KubeApi,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  await api.create(known.customResourceDefinitions, ciliumDefinition, {}, signal);
  const { group, version, plural } = known.ciliumNetworkPolicies;
  while (registry.find(group, version, plural) === undefined) await sleep(clock, pollEveryMs, signal);
}

/** Loosely typed: programs that need types use those of their own Kubernetes client. */
export interface LiveObject extends KubeObject {
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly status?: Readonly<Record<string, unknown>>;
  readonly data?: Readonly<Record<string, string>>;
}

/** The Kubernetes kinds that krane creates, for tests that read them. */
export const kinds = {
  namespaces: live(known.namespaces),
  secrets: live(known.secrets),
  pods: live(known.pods),
  services: live(known.services),
  replicaSets: live(known.replicaSets),
  appsDeployments: live(known.appsDeployments),
  podDisruptionBudgets: live(known.podDisruptionBudgets),
  ciliumNetworkPolicies: live(known.ciliumNetworkPolicies),
};

function live(kind: ResourceKind): ResourceKind<LiveObject> {
  return kind as ResourceKind<LiveObject>;
}
