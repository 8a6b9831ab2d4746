// Checks everything that an agent with this configuration needs, from where it would run and with its credentials.
// Changes nothing.
import { loadClusterAccess } from "../agent/cluster-access.ts";
import { withTimeout } from "../concurrency/abort.ts";
import type { Config } from "../config/config.ts";
import { createKubeApi } from "../kube/client.ts";
import type { CredentialDeps } from "../kube/credentials.ts";
import { createHttpTransport } from "../kube/http-transport.ts";
import type { Log } from "../telemetry/log.ts";
import { certificateChecks } from "./certificate-checks.ts";
import { type Check, checkTimeoutMs, describeError, runChecks } from "./checks.ts";
import { type ClusterParts, clusterChecks } from "./cluster-checks.ts";
import { filesCheck } from "./configuration-findings.ts";
import { controlPlaneCheck } from "./control-plane-check.ts";
import { type Finding, problem } from "./finding.ts";
import { vaultCheck } from "./vault-check.ts";

export interface ExamineDeps extends CredentialDeps {
  readonly log: Log;
  readonly env: Readonly<Record<string, string | undefined>>;
}

// Enough for all access reviews within the time limit of a check.
const connections = 8;

/** Rejects only with the signal's reason. */
export async function examine(
  config: Config,
  deps: ExamineDeps,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const cluster = await openCluster(config, deps, signal);
  try {
    const checks: readonly Check[] = [
      filesCheck(config, deps),
      ...certificateChecks(config, deps),
      ...(cluster.kind === "open"
        ? clusterChecks(config, cluster, deps)
        : [{ name: "cluster", run: async () => [cluster.finding] }]),
      controlPlaneCheck(config, deps),
      vaultCheck(config, deps),
    ];
    return await runChecks(checks, deps, signal);
  } finally {
    if (cluster.kind === "open") await cluster.transport.close();
  }
}

type OpenedCluster =
  | ({ readonly kind: "open" } & ClusterParts)
  | { readonly kind: "unknown"; readonly finding: Finding };

async function openCluster(config: Config, deps: ExamineDeps, signal: AbortSignal): Promise<OpenedCluster> {
  try {
    const { endpoint, stateNamespace } = await withTimeout(deps.clock, checkTimeoutMs, signal, (limited) =>
      loadClusterAccess(config, deps, limited),
    );
    const options = { endpoint, connections, userAgent: "krane-doctor", requestTimeoutMs: checkTimeoutMs };
    const transport = createHttpTransport(options, deps);
    const api = createKubeApi(transport);
    return { kind: "open", server: endpoint.server, transport, api, stateNamespace };
  } catch (error) {
    signal.throwIfAborted();
    const remedy =
      "set kubernetes.kubeconfig or KUBECONFIG to a working kubeconfig, or run this in krane's pod";
    return { kind: "unknown", finding: problem("cluster", describeError(error), remedy) };
  }
}
