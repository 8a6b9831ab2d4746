// A region to measure in: an empty real cluster, a control plane in this process over h2c, independent watches, and
// agents that are started and stopped.
import type { Interceptor, StreamRequest, UnaryRequest } from "@connectrpc/connect";
import { createSystemClock } from "../../src/concurrency/clock.ts";
import { Secret } from "../../src/config/secret.ts";
import { createControlPlaneServer } from "../../src/server/control-plane-server.ts";
import { requestApi } from "../../test/support/cluster/api-request.ts";
import { type Cluster, startCluster } from "../../test/support/cluster.ts";
import { eventually } from "../../test/support/eventually.ts";
import { createQuietLog } from "../../test/support/quiet-log.ts";
import { reportsOfCall } from "../../test/support/reports-of-call.ts";
import { createTestPlane, type StoreAdmin } from "../../test/support/store-admin.ts";
import type { Cores } from "../cores.ts";
import { type AgentOptions, type AgentProcess, startAgent } from "./agent-process.ts";
import { Gate } from "./gate.ts";
import { type ObjectWatch, watchObjects } from "./object-watch.ts";
import { Occurrences } from "./occurrences.ts";

/** A call of an agent to the control plane; a report is emitted once it is stored. */
export type Call =
  | { readonly kind: "question" }
  /** An agent compares what it has with the control plane's digest. */
  | { readonly kind: "digest" }
  | { readonly kind: "report"; readonly k8sName: string; readonly running: number };

export interface BenchRegion {
  readonly cluster: Cluster;
  readonly admin: StoreAdmin;
  readonly calls: Occurrences<Call>;
  /** Of the stream and the digest of desired state. */
  readonly orders: Gate;
  readonly replicaSets: ObjectWatch;
  readonly pods: ObjectWatch;
  /** Also aborts when something that the measurements depend on has failed. */
  readonly signal: AbortSignal;
  /** The URL of its control plane. */
  readonly controlUrl: string;
  startAgent(options?: Pick<AgentOptions, "workers" | "program" | "vault">): Promise<AgentProcess>;
}

export const regionName = "bench.local";
export const controlToken = "bench-token";
const runningStatus = 2;

export async function withRegion<T>(
  { binariesDir, cores }: { readonly binariesDir: string; readonly cores: Cores },
  interrupted: AbortSignal,
  work: (region: BenchRegion) => Promise<T>,
): Promise<T> {
  const broken = new AbortController();
  const fail = (reason: unknown) => broken.abort(reason);
  const signal = AbortSignal.any([interrupted, broken.signal]);
  const cleanUps: (() => void | Promise<void>)[] = [];
  try {
    const cluster = await cores.forCluster(() => startCluster({ binariesDir }, signal));
    cleanUps.push(() => cluster.stop());
    await allowAgent(cluster);
    await whenPoliciesServed(cluster, signal);
    const calls = new Occurrences<Call>();
    const orders = new Gate();
    const { admin, url, close } = await startControlPlane([listenIn(calls), holdBack(orders)], signal);
    cleanUps.push(close);
    const watch = async (path: string, detail: "metadata" | "whole") => {
      const opened = await watchObjects(cluster, { path, detail }, fail);
      cleanUps.push(() => opened.close());
      return opened;
    };
    const replicaSets = await watch("/apis/apps/v1/replicasets", "metadata");
    const pods = await watch("/api/v1/pods", "whole");
    return await work({
      cluster,
      admin,
      calls,
      orders,
      replicaSets,
      pods,
      signal,
      controlUrl: url,
      async startAgent(options) {
        const agent = await startAgent(
          {
            region: regionName,
            controlUrl: url,
            controlToken,
            kubeconfigPath: cluster.agentKubeconfigPath,
            ...options,
          },
          fail,
          signal,
        );
        cleanUps.push(() => agent.stop());
        return agent;
      },
    });
  } finally {
    for (const cleanUp of cleanUps.reverse()) await cleanUp();
  }
}

async function startControlPlane(interceptors: readonly Interceptor[], signal: AbortSignal) {
  const deps = {
    clock: createSystemClock(),
    log: createQuietLog(),
    readTextFile: () => Promise.reject(new Error("no file is needed")),
  };
  const options = { tokens: [new Secret(controlToken)], interceptors };
  const plane = createTestPlane(options, deps);
  await plane.admin.registerRegion(regionName);
  const { url, close } = await createControlPlaneServer(plane, { port: 0 }, deps).start(signal);
  return { admin: plane.admin, url, close: () => close() };
}

function listenIn(calls: Occurrences<Call>): Interceptor {
  return (next) => async (request) => {
    if (request.method.name === "GetDesiredDeploymentState") calls.emit({ kind: "question" });
    if (isDeploymentDigest(request)) calls.emit({ kind: "digest" });
    const answer = await next(request);
    for (const { change } of reportsOfCall(request.method.name, request.message)) {
      if (change.case === "update") {
        const { k8sName, instances } = change.value;
        const running = instances.filter(({ status }) => status === runningStatus).length;
        calls.emit({ kind: "report", k8sName, running });
      }
    }
    return answer;
  };
}

function isDeploymentDigest({ method, message }: Pick<UnaryRequest | StreamRequest, "method" | "message">) {
  return method.name === "GetDesiredDigest" && Reflect.get(message, "kind") === "deployment";
}

function holdBack(orders: Gate): Interceptor {
  return (next) => async (request) => {
    if (isDeploymentDigest(request)) await orders.whenOpen();
    const answer = await next(request);
    return answer.stream ? { ...answer, message: orders.guard(answer.message) } : answer;
  };
}

/** All rights, but not exempt from the API server's priority and fairness, as in production. */
async function allowAgent(cluster: Cluster): Promise<void> {
  const { status } = await requestApi(cluster, {
    method: "POST",
    path: "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    body: {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "ClusterRoleBinding",
      metadata: { name: "bench-agent" },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "cluster-admin" },
      subjects: [{ apiGroup: "rbac.authorization.k8s.io", kind: "User", name: cluster.agentUser }],
    },
  });
  if (status !== 201) throw new Error(`cannot grant the agent its rights: the API server returned ${status}`);
}

/** A new definition is established some time before its objects are served; the agent would wait for that. */
async function whenPoliciesServed(cluster: Cluster, signal: AbortSignal): Promise<void> {
  const probe = async () => {
    const { status } = await requestApi(cluster, { path: "/apis/cilium.io/v2/ciliumnetworkpolicies" });
    if (status !== 200) throw new Error(`the API server returned ${status}`);
  };
  await eventually("network policies are served", probe, { signal });
}
