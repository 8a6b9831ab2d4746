// Finds ReplicaSets of krane's that its watch does not show, by the pods that name them as their owner. Somebody may have
// removed their labels while no krane was running: without this, their pods would run for ever, and nobody would know.
import type { CacheEntry } from "../../kube/object-cache.ts";
import type { PodProjection } from "./projections.ts";
import type { Pods, ReplicaSets } from "./watched-kinds.ts";

interface Owner {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
}

const strangersMax = 10_000;

export class PodOwners {
  private readonly pods: Pods;
  private readonly replicaSets: ReplicaSets;
  /** Owners that were unknown at the last look. The watch of a new ReplicaSet may be slower than that of its pods. */
  private unknown: ReadonlySet<string> = new Set();
  /** Owners that are not krane's. */
  private readonly strangers = new Set<string>();

  constructor(pods: Pods, replicaSets: ReplicaSets) {
    this.pods = pods;
    this.replicaSets = replicaSets;
  }

  /** Looks up each owner that was unknown at the last look too. */
  async findMissing(signal: AbortSignal): Promise<void> {
    const unknown = this.unknownOwners();
    const before = this.unknown;
    this.unknown = new Set(unknown.keys());
    for (const { uid, ...ref } of unknown.values()) {
      if (!before.has(uid)) continue;
      const isFound = await this.replicaSets.find(
        ref,
        uid,
        ({ ownership }) => ownership.kind === "ours",
        signal,
      );
      if (isFound) continue;
      if (this.strangers.size >= strangersMax) this.strangers.clear();
      this.strangers.add(uid);
    }
  }

  private unknownOwners(): ReadonlyMap<string, Owner> {
    const unknown = new Map<string, Owner>();
    for (const pod of this.pods.cache.all()) {
      const owner = ownerOf(pod);
      if (owner === undefined || unknown.has(owner.uid) || this.strangers.has(owner.uid)) continue;
      if (this.replicaSets.get(`${owner.namespace}/${owner.name}`)?.uid !== owner.uid)
        unknown.set(owner.uid, owner);
    }
    return unknown;
  }
}

function ownerOf({ key, value }: CacheEntry<PodProjection>): Owner | undefined {
  const { ownerUid: uid, ownerName: name } = value;
  const [namespace = ""] = key.split("/");
  return uid === undefined || name === undefined ? undefined : { uid, namespace, name };
}
