// The cluster that `krane dev` works on, embedded or real.

import type { PodBehaviours } from "@krane/kube-apiserver";
import type { KubeApi } from "../kube/api.ts";

export interface DevCluster {
  /** Acts as the user, not as krane. */
  readonly api: KubeApi;
  readonly url: string;
  /** The kubeconfig for kubectl and the agent. */
  readonly kubeconfigPath: string;
  /** How pods behave; absent where they are real. */
  readonly behaviours?: PodBehaviours;
  stop(): Promise<void>;
}
