// The pods of a ReplicaSet, all running, as the kubelets of a cluster would report them.
import type { ReplicaSet } from "kubernetes-types/apps/v1.js";
import type { Pod } from "kubernetes-types/core/v1.js";

const conditions = ["PodScheduled", "Initialized", "ContainersReady", "Ready"].map((type) => ({
  type,
  status: "True",
  lastTransitionTime: "2026-01-02T03:04:07Z",
}));

/** `first`: a number that is theirs alone, and as many after it as there are pods. */
export function runningPods({ metadata, spec }: ReplicaSet, first: number): readonly Pod[] {
  const { namespace = "", name = "", uid = "" } = metadata ?? {};
  return Array.from({ length: spec?.replicas ?? 0 }, (_, ordinal): Pod => {
    const number = first + ordinal;
    return {
      apiVersion: "v1",
      kind: "Pod",
      metadata: {
        ...spec?.template?.metadata,
        name: `${name}-${number.toString(36).padStart(5, "x")}`,
        namespace,
        uid: `00000000-0000-4000-8000-${number.toString(16).padStart(12, "0")}`,
        creationTimestamp: "2026-01-02T03:04:05Z",
        ownerReferences: [
          {
            apiVersion: "apps/v1",
            kind: "ReplicaSet",
            name,
            uid,
            controller: true,
            blockOwnerDeletion: true,
          },
        ],
      },
      spec: { containers: [], ...spec?.template?.spec, nodeName: `node-${number % 500}` },
      status: {
        phase: "Running",
        podIP: `10.${(number >> 16) & 255}.${(number >> 8) & 255}.${number & 255}`,
        conditions,
        containerStatuses: [
          {
            name: spec?.template?.spec?.containers[0]?.name ?? "",
            image: "",
            imageID: "",
            ready: true,
            restartCount: 0,
            state: { running: {} },
          },
        ],
      },
    };
  });
}
