// The cluster that `krane dev` works on, whichever it is.

import type { PodBehaviours } from "@krane/kube-apiserver";
import type { KubeApi } from "../kube/api.ts";

export interface DevCluster {
  /** As the person at the keyboard, not as krane. */
  readonly api: KubeApi;
  readonly url: string;
  /** The file that leads kubectl, and the agent, here. */
  readonly kubeconfigPath: string;
  /** How pods behave; absent where they are real. */
  readonly behaviours?: PodBehaviours;
  stop(): Promise<void>;
}
