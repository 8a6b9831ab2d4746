// Remembers the ReplicaSets of pods that asked for secrets, so that the next call reads only the pod from the API server. One
// counts for as long as the controller's watch works and shows the same object with the same content.
//
// It can only allow. A watch may be some seconds behind, so whoever would refuse a pod by a remembered ReplicaSet reads the
// live one first.
import type { ReplicaSet } from "kubernetes-types/apps/v1.js";
import type { WatchedObject } from "../engine/controller-definition.ts";

/** What the controller of deployments watches. */
export interface WatchedReplicaSets {
  /** By `namespace/name`. Undefined if it is not sealed or is being deleted, or if the watch does not work. */
  watched(key: string): WatchedObject | undefined;
}

interface Known {
  readonly as: WatchedObject;
  readonly replicaSet: ReplicaSet;
}

// Several kilobytes each.
const knownMax = 500;

export class KnownReplicaSets {
  private readonly source: WatchedReplicaSets;
  private readonly known = new Map<string, Known>();

  constructor(source: WatchedReplicaSets) {
    this.source = source;
  }

  get(key: string, uid: string): ReplicaSet | undefined {
    const known = this.known.get(key);
    if (known?.as.uid !== uid) return undefined;
    const now = this.source.watched(key);
    if (now !== undefined && isSameContent(known.as, now)) return known.replicaSet;
    this.known.delete(key);
    return undefined;
  }

  /** It was just read. Only the state that the watch shows too can be remembered. */
  note(key: string, replicaSet: ReplicaSet): void {
    const as = this.source.watched(key);
    const { uid, resourceVersion } = replicaSet.metadata ?? {};
    if (as === undefined || as.uid !== uid || as.resourceVersion !== resourceVersion) return;
    this.known.delete(key);
    this.known.set(key, { as, replicaSet: withoutFieldSets(replicaSet) });
    const [oldest] = this.known.keys();
    if (this.known.size > knownMax && oldest !== undefined) this.known.delete(oldest);
  }
}

/**
 * The status does not count. The generation changes with every change of the spec, also with one that the hash leaves out
 * because it is tolerated; the hash covers labels and annotations, with the seal.
 */
function isSameContent(a: WatchedObject, b: WatchedObject): boolean {
  return a.uid === b.uid && a.generation === b.generation && a.hash === b.hash;
}

/** Two thirds of an object are the sets of fields of its managers. */
function withoutFieldSets(replicaSet: ReplicaSet): ReplicaSet {
  const { status: _, metadata, ...rest } = replicaSet;
  const managedFields = (metadata?.managedFields ?? []).map(({ fieldsV1: _, ...entry }) => entry);
  return { ...rest, metadata: { ...metadata, managedFields } };
}
