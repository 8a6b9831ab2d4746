// Watches ReplicaSets and pods of the whole cluster and notes when each state of them was first seen. It shares no code with
// krane's client, whose delay it measures.
import type { Pod } from "kubernetes-types/core/v1.js";
import type { ObjectMeta } from "kubernetes-types/meta/v1.js";
import { watchPath } from "../../test/support/cluster/watched-path.ts";
import type { TestCluster } from "../../test/support/cluster-under-test.ts";

interface SeenObject {
  readonly metadata?: ObjectMeta;
  readonly spec?: Pod["spec"];
  readonly status?: Pod["status"];
}

/** Resolves with the object and when it was seen, once one is in the wanted state. */
type Waiting = (event: string, object: SeenObject) => void;

export interface ClusterWatch {
  /** `isWanted` is given every event of the kind from now on. */
  until(
    kind: "replicasets" | "pods",
    isWanted: (object: SeenObject, event: string) => boolean,
  ): Promise<{ readonly object: SeenObject; readonly atMs: number }>;
}

const paths = { replicasets: "/apis/apps/v1/replicasets", pods: "/api/v1/pods" } as const;

export async function watchCluster(cluster: TestCluster, signal: AbortSignal): Promise<ClusterWatch> {
  const waiting = { replicasets: new Set<Waiting>(), pods: new Set<Waiting>() };
  for (const kind of ["replicasets", "pods"] as const) {
    await watchPath<SeenObject>(cluster, paths[kind], signal, (event, object) => {
      for (const each of waiting[kind]) each(event, object);
    });
  }
  return {
    until: (kind, isWanted) =>
      new Promise((resolve) => {
        const look: Waiting = (event, object) => {
          if (!isWanted(object, event)) return;
          waiting[kind].delete(look);
          resolve({ object, atMs: performance.now() });
        };
        waiting[kind].add(look);
      }),
  };
}
