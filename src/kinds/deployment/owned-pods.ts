// The pods of one deployment, as far as their isolation goes. A class, because one is made for every deployment once a
// minute, and closures would take more memory.
import type { PodGroup, PodMember, PodReplacement, PodWeakness } from "../../engine/pod-replacement.ts";
import type { CacheEntry } from "../../kube/object-cache.ts";
import { withoutSandbox } from "./pod-weakness.ts";
import type { PodProjection } from "./projections.ts";
import type { Pods, ReplicaSets } from "./watched-kinds.ts";

export interface OwnedPodsDeps {
  readonly replicaSets: Pick<ReplicaSets, "get">;
  readonly pods: { readonly cache: Pick<Pods["cache"], "byIndex" | "size"> };
  readonly replacement: PodReplacement;
  readiness(key: string): { readonly ready: number; readonly total: number };
}

export class OwnedPods implements PodGroup {
  readonly wanted: PodGroup["wanted"];
  private readonly key: string;
  private readonly deps: OwnedPodsDeps;

  constructor(key: string, wanted: PodGroup["wanted"], deps: OwnedPodsDeps) {
    this.key = key;
    this.wanted = wanted;
    this.deps = deps;
  }

  get owner(): string {
    return ownerOf(this.key);
  }

  get replacement(): PodReplacement {
    return this.deps.replacement;
  }

  members(): readonly PodMember[] {
    return this.entries().map(({ key, uid, value }) => {
      const [namespace = "", name = ""] = key.split("/");
      const isRunning = value.standing === "running";
      return { ref: { namespace, name }, uid, isRunning, weakness: this.weaknessOf(value) };
    });
  }

  hasWeak(): boolean {
    return this.entries().some(({ value }) => this.weaknessOf(value) !== undefined);
  }

  replicas(): number {
    return this.deps.replicaSets.get(this.key)?.value.replicas ?? 0;
  }

  isComplete(): boolean {
    const { ready, total } = this.deps.readiness(this.key);
    return ready >= total;
  }

  podsInAll(): number {
    return this.deps.pods.cache.size;
  }

  /** A setting decides about the sandbox, so it is required only of pods from the template that the owner has now. */
  private weaknessOf({ weakness, isUnsandboxed, templateHash }: PodProjection): PodWeakness | undefined {
    const owner = isUnsandboxed ? this.deps.replicaSets.get(this.key)?.value : undefined;
    return owner?.isSandboxed && owner.templateHash === templateHash ? withoutSandbox(weakness) : weakness;
  }

  /** An owner reference to an object that krane did not seal proves nothing. */
  private entries(): readonly CacheEntry<PodProjection>[] {
    const { replicaSets, pods } = this.deps;
    const owner = replicaSets.get(this.key);
    return owner?.value.ownership.kind === "ours" ? pods.cache.byIndex("owner", owner.uid) : [];
  }
}

/** The name under which a deployment is remembered. */
export function ownerOf(key: string): string {
  return `ReplicaSet ${key}`;
}
