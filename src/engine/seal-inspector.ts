// What a controller's caches show about seals, and the permission to adopt objects of another krane.
import { create } from "@bufbuild/protobuf";
import type { WorkPriority } from "../concurrency/work-queue.ts";
import { type Stranger, StrangerSchema } from "../gen/krane/v1/agent_pb.ts";
import type { Seal } from "../model/seal.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { StepsApplier } from "./apply-steps.ts";
import type { AdoptedObject, AdoptionOutcome, SealedObjects } from "./running-controller.ts";
import { countAllSeals, type KnownCounts, type SealCounts, sealTotals } from "./seal-counts.ts";
import { type FoundStranger, findStrangers, type StrangerSources } from "./strangers.ts";

export interface SealInspectorDeps<Spec> extends StrangerSources<Spec> {
  /** The controller's name. */
  readonly controller: string;
  readonly seal: Seal;
  readonly applier: Pick<StepsApplier, "checked" | "adoptions">;
  readonly metrics: Pick<Metrics, "sealedObjects">;
  enqueue(key: string, priority: WorkPriority): void;
}

export class SealInspector<Spec> implements SealedObjects {
  private readonly deps: SealInspectorDeps<Spec>;
  private readonly known: KnownCounts = new WeakMap();

  constructor(deps: SealInspectorDeps<Spec>) {
    this.deps = deps;
  }

  counts(): readonly SealCounts[] {
    const { definition, applier, seal } = this.deps;
    return countAllSeals(definition.watchedKinds, applier.checked(), seal.olderKeyIds, this.known);
  }

  measure(): void {
    const { controller, metrics } = this.deps;
    for (const [seal, count] of sealTotals(this.counts()))
      metrics.sealedObjects.set({ controller, seal }, count);
  }

  strangers(): Stranger[] {
    const { controller, applier } = this.deps;
    return findStrangers(this.deps).map(({ keys, ...stranger }) =>
      create(StrangerSchema, {
        controller,
        ...stranger,
        adoptable: keys.length > 0,
        pending: applier.adoptions.isAllowed(nameOf(stranger), stranger.uid),
      }),
    );
  }

  /** The outcomes are in the order of the objects. */
  adopt(objects: readonly AdoptedObject[]): readonly AdoptionOutcome[] {
    const strangers = new Map(findStrangers(this.deps).map((each) => [`${each.kind} ${nameOf(each)}`, each]));
    return objects.map((object) => this.adoptOne(object, strangers.get(`${object.kind} ${nameOf(object)}`)));
  }

  private adoptOne({ uid }: AdoptedObject, stranger: FoundStranger | undefined): AdoptionOutcome {
    if (stranger === undefined) return { kind: "not-found" };
    if (stranger.uid !== uid) {
      const reason = "it was deleted and created again since it was listed";
      return { kind: "refused", reason };
    }
    if (stranger.keys.length === 0) return { kind: "refused", reason: stranger.obstacle };
    const isNew = this.deps.applier.adoptions.allow(nameOf(stranger), uid);
    if (isNew) for (const key of stranger.keys) this.deps.enqueue(key, "fresh");
    return { kind: isNew ? "allowed" : "pending" };
  }
}

/** As object-writer.ts names objects. */
function nameOf({ kind, namespace, name }: Pick<FoundStranger, "kind" | "namespace" | "name">): string {
  return `${kind.slice(kind.lastIndexOf("/") + 1)} ${namespace}/${name}`;
}
