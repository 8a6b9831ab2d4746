// Uses an existing cluster. It is first searched for objects of another krane: two agents with different control
// planes on one cluster would each hold back and repair the other's objects.

import { type Clock, sleep } from "../concurrency/clock.ts";
import type { KubeApi } from "../kube/api.ts";
import { createKubeApi } from "../kube/client.ts";
import type { CredentialDeps } from "../kube/credentials.ts";
import { loadKubeEndpoint } from "../kube/endpoint.ts";
import { KubeApiError } from "../kube/errors.ts";
import { createHttpTransport } from "../kube/http-transport.ts";
import { appsDeployments, ciliumNetworkPolicies, replicaSets } from "../kube/resources.ts";
import type { KubeObject, ResourceKind } from "../kube/types.ts";
import { labelKeys, managedBy } from "../model/labels.ts";
import type { DevCluster } from "./dev-cluster.ts";
import { DevError } from "./dev-error.ts";
import { devNamespace, devWorkspaceId } from "./scenario.ts";

const connections = 4;
// An API server that has just started, or just got a new kind, asks clients to retry.
const attemptsMax = 10;
const pauseMs = 1_000;

const foreign = `${labelKeys.managedBy}=${managedBy},${labelKeys.workspaceId}!=${devWorkspaceId}`;
// A policy does not name its workspace; the namespace identifies what an earlier run left.
const elsewhere = { fieldSelector: `metadata.namespace!=${devNamespace}` };
const searchedKinds: readonly ResourceKind[] = [replicaSets, appsDeployments, ciliumNetworkPolicies];

export async function connectRealCluster(
  kubeconfigPath: string,
  deps: CredentialDeps,
  signal: AbortSignal,
): Promise<DevCluster> {
  const endpoint = await loadKubeEndpoint({ kubeconfig: kubeconfigPath, env: {} }, deps, signal).catch(
    unusable,
  );
  const transport = createHttpTransport({ endpoint, connections, userAgent: "krane-dev" }, deps);
  const api = createKubeApi(transport);
  try {
    await refuseForeignObjects(api, endpoint.server, deps.clock, signal);
  } catch (error) {
    await transport.close();
    return unusable(error);
  }
  return { api, url: endpoint.server, kubeconfigPath, stop: () => transport.close() };
}

async function refuseForeignObjects(
  api: KubeApi,
  server: string,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  for (const kind of searchedKinds) {
    const found = await findForeign(api, kind, clock, signal);
    if (found === undefined) continue;
    const { namespace, name } = found.metadata ?? {};
    throw new DevError(
      "cluster_in_use",
      `--kubeconfig: the cluster at ${server} is managed by another krane (it created ${kind.kind} ` +
        `${namespace}/${name}); use one without krane, or omit the flag to use an embedded cluster`,
    );
  }
}

async function findForeign(
  api: KubeApi,
  kind: ResourceKind,
  clock: Clock,
  signal: AbortSignal,
): Promise<KubeObject | undefined> {
  for (let attempt = 1; ; attempt++) {
    try {
      const selection = { labelSelector: foreign, ...(kind === ciliumNetworkPolicies && elsewhere) };
      const page = await api.list(kind, { ...selection, limit: 1, detail: "metadata" }, signal);
      return page.items[0];
    } catch (error) {
      if (!(error instanceof KubeApiError)) throw error;
      // A cluster without Cilium has no policies at all.
      if (error.status === 404) return undefined;
      const isBusy = error.status === 429 || error.status === 503;
      if (!isBusy || attempt === attemptsMax) throw error;
      await sleep(clock, Math.min(error.retryAfterMs ?? pauseMs, pauseMs), signal);
    }
  }
}

function unusable(error: unknown): never {
  if (!(error instanceof KubeApiError)) throw error;
  const because = error.cause instanceof Error ? `: ${error.cause.message}` : "";
  throw new DevError("cluster_unusable", `--kubeconfig: ${error.message}${because}`, { cause: error });
}
