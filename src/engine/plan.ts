// Plans: what has to be done about one key, as data. A kind's definition makes the plan; the engine executes it, and
// only the engine talks to the API server.
import type { DeleteOutcome } from "../kube/api.ts";
import type { KubeObject, ObjectRef, ResourceKind } from "../kube/types.ts";
import type { Ownership } from "../model/ownership.ts";
import type { SealedIds } from "../model/seal.ts";
import { asUnsealed } from "./adoptions.ts";
import type { DriftedField } from "./drifted-fields.ts";
import type { PodGroup } from "./pod-replacement.ts";
import type { WatchedKind } from "./watched-kind.ts";

/** What the engine needs from a live object of any kind. */
export interface LiveProjection {
  readonly ownership: Ownership;
  readonly deleting: boolean;
  /** RFC 3339. */
  readonly createdAt: string | undefined;
  /** The hash of the last applied manifest, as its annotation has it. */
  readonly manifestHash?: string | undefined;
}

export type Plan =
  /** The steps run one after the other. `leftovers`: live objects that the spec no longer has; deleted after the steps. */
  | {
      readonly kind: "apply";
      readonly steps: readonly PlanStep[];
      readonly leftovers?: readonly OwnedTarget[];
    }
  /** "order": the deletion was ordered. "unused": a companion that nothing needs any more. */
  | {
      readonly kind: "delete";
      readonly targets: readonly OwnedTarget[];
      readonly authority: "order" | "unused";
    }
  /** A precondition is not met; nothing can be done until it is. */
  | { readonly kind: "unmet"; readonly reason: string }
  /** Nothing to do yet. */
  | { readonly kind: "later"; readonly afterMs: number }
  | { readonly kind: "nothing" };

export type PlanStep =
  | { readonly kind: "namespace"; readonly name: string }
  | { readonly kind: "object"; readonly object: OwnedObject }
  | { readonly kind: "checked"; readonly object: CheckedObject }
  /** Another key has to be in sync first. `confirm` judges that again by a read, unless it is certain. */
  | {
      readonly kind: "await";
      readonly key: string;
      readonly isReady: boolean;
      readonly isCertain: boolean;
      confirm(signal: AbortSignal): Promise<boolean>;
    }
  /**
   * Independent steps: all are tried, even if one is refused. They are created when their turn comes, because they
   * may need the uid of an object that an earlier step creates.
   */
  | { readonly kind: "each"; steps(): readonly PlanStep[] }
  /** Pods that are less isolated than their template are replaced. `object`: what makes them. */
  | { readonly kind: "pods"; readonly pods: PodGroup; readonly object: OwnedObject }
  /** A precondition is not met: the plan stays incomplete, but its earlier steps are applied. */
  | { readonly kind: "unmet"; readonly reason: string }
  /** What the earlier steps applied does not work, because of something that krane cannot change. Its version is settled. */
  | { readonly kind: "flawed"; readonly reason: string };

/** An object of a watched kind. `ownedObject` and `ownedTarget` create these, and hide the types of the kind. */
export interface OwnedObject {
  readonly kind: ResourceKind;
  readonly ref: ObjectRef;
  /** The hash of the manifest's content; see applied-content.ts. */
  readonly contentHash: string;
  readonly refusesStrangers: boolean;
  /** What its seal says that it belongs to. */
  ids(): SealedIds;
  /** Without its seal. */
  manifest(): KubeObject;
  live(): LiveEntry | undefined;
  /** The same, judged as if it had no seal; see adoptions.ts. */
  adoptee(): LiveEntry | undefined;
  /** Converts a live object that the cache does not show. */
  entryOf(object: KubeObject): LiveEntry;
  /** Shows such an object from now on, so that it does not count as gone. */
  keep(object: KubeObject): void;
  wrote(object: KubeObject): LiveEntry;
  /** The server no longer has the object of this uid. */
  gone(uid: string): void;
  /** The content hash of an object that is not live, such as the response to a dry run. */
  hashOf(object: KubeObject): string;
  /** Where a live object differs from the manifest, apart from what is tolerated. */
  driftOf(object: KubeObject): readonly DriftedField[];
  /** Names what lowers the isolation of its pods; empty if nothing does. */
  weaknessOf(object: KubeObject): string;
  /** How many pods it may have while its template is weaker than krane's: none that does not run already. */
  replicasHeld(): number;
  /** What others added to a live object, to which krane may have applied another manifest. */
  addedTo(object: KubeObject): readonly DriftedField[];
}

export interface OwnedTarget {
  readonly kind: ResourceKind;
  readonly ref: ObjectRef;
  live(): LiveEntry | undefined;
  /** Look it up by name if the cache does not show it: it may have lost the labels that the cache selects by. */
  readonly isLookedUp: boolean;
  entryOf(object: KubeObject): LiveEntry;
  /** Shows it from now on, so that it does not count as gone. */
  keep(object: KubeObject): void;
  /** Whether it lost the labels that the cache selects by; see departures.ts. */
  isStray(): boolean;
  /** These labels. */
  selectedLabelsOf(object: KubeObject): Readonly<Record<string, string>>;
  wrote(object: KubeObject): void;
  /** Deletes it: `send` does, and its answer is taken into account before the watch shows it. */
  delete(uid: string, send: () => Promise<DeleteOutcome>, signal: AbortSignal): Promise<DeleteOutcome>;
}

export interface LiveEntry {
  readonly uid: string;
  readonly contentHash: string;
  /** Who owns it, and whether it has the desired id. */
  readonly ownership: Ownership;
  readonly deleting: boolean;
  readonly createdAt: string | undefined;
  readonly manifestHash: string | undefined;
}

/** An object of a kind that is not watched: it is read by name and compared. */
export interface CheckedObject {
  readonly kind: ResourceKind;
  readonly ref: ObjectRef;
  /** What its seal says that it belongs to. */
  ids(): SealedIds;
  /** Without its seal. */
  manifest(): KubeObject;
  isCurrent(live: KubeObject): boolean;
  judge(live: KubeObject): Ownership;
}

interface OwnedOptions<T extends KubeObject, P> {
  readonly key: string;
  readonly ref: ObjectRef;
  /** Called only when it is needed. */
  contentHash(): string;
  /**
   * The server refuses an apply without force over an object of this name that somebody else created, because the
   * field that identifies the owner conflicts. Default false.
   */
  readonly refusesStrangers?: boolean;
  ids(): SealedIds;
  manifest(): T;
  judge(live: P): Ownership;
  /** Of a kind that runs untrusted code; see OwnedObject. Default: nothing lowers its isolation. */
  weaknessOf?(object: T): string;
  replicasHeld?(): number;
}

export function ownedObject<T extends KubeObject, P extends LiveProjection, I extends string>(
  watched: WatchedKind<T, P, I>,
  options: OwnedOptions<T, P>,
): OwnedObject {
  return new WatchedObject(watched, options);
}

// A class, because a plan is made for every object once a minute, and closures would take a kilobyte each.
class WatchedObject<T extends KubeObject, P extends LiveProjection, I extends string> implements OwnedObject {
  private readonly watched: WatchedKind<T, P, I>;
  private readonly options: OwnedOptions<T, P>;

  constructor(watched: WatchedKind<T, P, I>, options: OwnedOptions<T, P>) {
    this.watched = watched;
    this.options = options;
  }

  get kind(): ResourceKind {
    return this.watched.kind;
  }

  get ref(): ObjectRef {
    return this.options.ref;
  }

  get contentHash(): string {
    return this.options.contentHash();
  }

  get refusesStrangers(): boolean {
    return this.options.refusesStrangers ?? false;
  }

  ids(): SealedIds {
    return this.options.ids();
  }

  manifest(): KubeObject {
    return this.options.manifest();
  }

  live(): LiveEntry | undefined {
    const entry = this.watched.get(this.options.key);
    return entry && liveEntry(entry, this.options.judge);
  }

  adoptee(): LiveEntry | undefined {
    const entry = this.watched.get(this.options.key);
    const judge = (live: P) => this.options.judge({ ...live, ownership: asUnsealed });
    return entry && liveEntry(entry, judge);
  }

  entryOf(object: KubeObject): LiveEntry {
    return liveEntry(this.watched.entryOf(object as T), this.options.judge);
  }

  keep(object: KubeObject): void {
    this.watched.keep(object as T);
  }

  wrote(object: KubeObject): LiveEntry {
    return liveEntry(this.watched.wrote(object as T), this.options.judge);
  }

  gone(uid: string): void {
    this.watched.gone(this.options.key, uid);
  }

  hashOf(object: KubeObject): string {
    return this.watched.contentHash(object as T);
  }

  driftOf(object: KubeObject): readonly DriftedField[] {
    return this.watched.driftOf(object as T, this.options.manifest());
  }

  weaknessOf(object: KubeObject): string {
    return this.options.weaknessOf?.(object as T) ?? "";
  }

  replicasHeld(): number {
    return this.options.replicasHeld?.() ?? 0;
  }

  addedTo(object: KubeObject): readonly DriftedField[] {
    return this.watched.driftOf(object as T);
  }
}

export function ownedTarget<T extends KubeObject, P extends LiveProjection, I extends string>(
  watched: WatchedKind<T, P, I>,
  options: Pick<OwnedOptions<T, P>, "key" | "ref" | "judge"> & { readonly isLookedUp?: boolean },
): OwnedTarget {
  const { key, ref, judge, isLookedUp = false } = options;
  return {
    kind: watched.kind,
    ref,
    isLookedUp,
    entryOf: (object) => liveEntry(watched.entryOf(object as T), judge),
    live() {
      const entry = watched.get(key);
      return entry && liveEntry(entry, judge);
    },
    keep: (object) => watched.keep(object as T),
    isStray: () => watched.isStray(key),
    selectedLabelsOf: (object) => watched.selectedLabelsOf(object as T),
    wrote: (object) => void watched.wrote(object as T),
    delete: (uid, send) => watched.delete(ref, uid, send),
  };
}

function liveEntry<P extends LiveProjection>(
  entry: { readonly uid: string; readonly hash?: string; readonly value: P },
  judge: (live: P) => Ownership,
): LiveEntry {
  const { deleting, createdAt, manifestHash } = entry.value;
  return {
    uid: entry.uid,
    contentHash: entry.hash ?? "",
    ownership: judge(entry.value),
    deleting,
    createdAt,
    manifestHash,
  };
}
