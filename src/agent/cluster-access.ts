// Which cluster to look after, and as whom.
import type { Config } from "../config/config.ts";
import type { KubeEndpoint } from "../kube/credentials.ts";
import { loadKubeEndpoint } from "../kube/endpoint.ts";
import { KubeApiError } from "../kube/errors.ts";
import { readCredentialFile, serviceAccountDir } from "../kube/in-cluster.ts";
import type { AgentDeps } from "./agent-deps.ts";
import { AgentError } from "./agent-error.ts";

export interface ClusterAccess {
  readonly endpoint: KubeEndpoint;
  /** The namespace that krane runs in, where it is known to run in this very cluster. */
  readonly ownNamespace?: string;
}

type ClusterDeps = Pick<AgentDeps, "clock" | "env" | "readTextFile" | "runCommand">;

/**
 * Looks where the configuration says, else for what a pod has, else in KUBECONFIG. Finding
 * nothing usable is a mistake in the set-up that no restart mends. Whether the API server
 * answers is not known yet.
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
      "no Kubernetes cluster to look after: kubernetes.kubeconfig and the variable KUBECONFIG are not set, and " +
        "krane does not run in a pod; set one of the two to the path of a kubeconfig, or run krane in the cluster",
    );
  }
  try {
    const endpoint = await loadKubeEndpoint({ ...kubernetes, env }, deps, signal);
    if (source !== "pod") return { endpoint };
    const ownNamespace = await readCredentialFile(`${serviceAccountDir}/namespace`, deps, signal);
    return { endpoint, ownNamespace: ownNamespace.trim() };
  } catch (cause) {
    if (!(cause instanceof KubeApiError)) throw cause;
    const because = cause.cause instanceof Error ? `: ${cause.cause.message}` : "";
    throw new AgentError("cluster_unknown", `${titles[source]}: ${cause.message}${because}`, { cause });
  }
}

const titles = {
  configuration: "kubernetes.kubeconfig",
  pod: "the credentials of krane's pod",
  environment: "KUBECONFIG",
} as const;

/** Which of the places the credentials come from, in the order in which they are looked for. */
function sourceOf(kubeconfig: string | undefined, env: AgentDeps["env"]): keyof typeof titles | undefined {
  if (kubeconfig !== undefined) return "configuration";
  if (env["KUBERNETES_SERVICE_HOST"] && env["KUBERNETES_SERVICE_PORT"]) return "pod";
  return env["KUBECONFIG"] ? "environment" : undefined;
}
