// Which pods' logs may be read: those that are proven to be of the deployment that was asked for, in the way in which pods
// prove that they may have its secrets (workload-identity.ts). Labels only find them.
import type { Pod } from "kubernetes-types/core/v1.js";
import type { DesiredDeployments } from "../../kinds/deployment/desired-deployments.ts";
import type { KubeApi } from "../../kube/api.ts";
import type { Seal } from "../../model/seal.ts";
import type { KnownReplicaSets } from "../../services/known-replica-sets.ts";
import { judgeWanted } from "../../services/wanted-workload.ts";
import { identifyPod } from "../../services/workload-identity.ts";

export interface ProofDeps {
  readonly api: KubeApi;
  readonly known: KnownReplicaSets;
  readonly desired: DesiredDeployments;
  /** Undefined until it is loaded. */
  seal(): Seal | undefined;
}

export interface AskedDeployment {
  readonly k8sNamespace: string;
  readonly k8sName: string;
  readonly deploymentId: string;
}

/** Why the pod is not proven to be of the deployment; undefined if it is. */
export async function findProofFlaw(
  pod: Pod,
  asked: AskedDeployment,
  { api, known, desired, seal: currentSeal }: ProofDeps,
  signal: AbortSignal,
): Promise<string | undefined> {
  const seal = currentSeal();
  if (seal === undefined) return "krane has not loaded its seal yet";
  const outcome = await identifyPod(pod, { api, seal, known }, signal);
  if (outcome.kind === "refused") return outcome.reason;
  const { identity } = outcome;
  const isAsked =
    identity.deploymentId === asked.deploymentId && identity.key === `${asked.k8sNamespace}/${asked.k8sName}`;
  if (!isAsked) return "pod belongs to another deployment";
  const wanted = judgeWanted(identity, desired);
  return wanted.kind === "wanted" ? undefined : wanted.reason;
}
