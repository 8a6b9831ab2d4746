// Finds the cluster that the agent manages, and its credentials for it.
import type { Config } from "../config/config.ts";
import type { KubeEndpoint } from "../kube/credentials.ts";
import { loadKubeEndpoint } from "../kube/endpoint.ts";
import { KubeApiError } from "../kube/errors.ts";
import { createHttpTransport, type HttpTransportOptions } from "../kube/http-transport.ts";
import { readCredentialFile, serviceAccountDir } from "../kube/in-cluster.ts";
import type { KubeTransport } from "../kube/transport.ts";
import type { AgentDeps } from "./agent-deps.ts";
import { AgentError } from "./agent-error.ts";

export interface ClusterAccess {
  readonly endpoint: KubeEndpoint;
  /** The namespace that krane runs in; set only when krane runs in a pod of this cluster. */
  readonly ownNamespace?: string;
  /**
   * Where krane keeps its own objects. It trusts them, so tenants must not be able to write there, and it manages no
   * workloads there. May be missing in the cluster until krane creates it.
   */
  readonly stateNamespace: string;
}

const defaultStateNamespace = "krane";

type ClusterDeps = Pick<AgentDeps, "clock" | "env" | "readTextFile" | "runCommand">;

/**
 * Uses the kubeconfig of the configuration, else the pod's service account, else KUBECONFIG. Throws when none of them
 * is usable: that is a setup error that a restart does not fix. Does not contact the API server.
 */
export async function loadClusterAccess(
  { kubernetes }: Pick<Config, "kubernetes">,
  deps: ClusterDeps,
  signal: AbortSignal,
): Promise<ClusterAccess> {
  const { env } = deps;
  const source = sourceOf(kubernetes.kubeconfig, env);
  if (source === undefined) {
    throw new AgentError(
      "cluster_unknown",
      "no Kubernetes cluster configured: kubernetes.kubeconfig and the variable KUBECONFIG are not set, and " +
        "krane does not run in a pod; set one of the two to the path of a kubeconfig, or run krane in the cluster",
    );
  }
  try {
    const endpoint = await loadKubeEndpoint({ ...kubernetes, env }, deps, signal);
    const { namespace } = kubernetes;
    if (source !== "pod") return { endpoint, stateNamespace: namespace ?? defaultStateNamespace };
    const text = await readCredentialFile(`${serviceAccountDir}/namespace`, deps, signal);
    const ownNamespace = text.trim();
    return { endpoint, ownNamespace, stateNamespace: namespace ?? ownNamespace };
  } catch (cause) {
    if (!(cause instanceof KubeApiError)) throw cause;
    const reason = cause.cause instanceof Error ? `: ${cause.cause.message}` : "";
    throw new AgentError("cluster_unknown", `${titles[source]}: ${cause.message}${reason}`, { cause });
  }
}

/** Connects on the first request. */
export function connectKube(
  options: HttpTransportOptions,
  deps: Pick<AgentDeps, "clock" | "network">,
): KubeTransport {
  return deps.network?.connectKube(options) ?? createHttpTransport(options, deps);
}

const titles = {
  configuration: "kubernetes.kubeconfig",
  pod: "the credentials of krane's pod",
  environment: "KUBECONFIG",
} as const;

/** Where the credentials come from, in order of precedence. */
function sourceOf(kubeconfig: string | undefined, env: AgentDeps["env"]): keyof typeof titles | undefined {
  if (kubeconfig !== undefined) return "configuration";
  if (env["KUBERNETES_SERVICE_HOST"] && env["KUBERNETES_SERVICE_PORT"]) return "pod";
  return env["KUBECONFIG"] ? "environment" : undefined;
}
