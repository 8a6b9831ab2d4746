// What has to be done about one key, as data. Definitions make plans, the engine carries them out, and
// only the engine talks to the API server.
import type { KubeObject, ObjectRef, ResourceKind } from "../kube/types.ts";
import type { Ownership } from "../model/ownership.ts";
import type { WatchedKind } from "./watched-kind.ts";

/** What the engine reads of a live object, whatever its kind. */
export interface LiveProjection {
  readonly ownership: Ownership;
  readonly deleting: boolean;
  /** RFC 3339. */
  readonly createdAt: string | undefined;
}

export type Plan =
  /** In this order; a step begins when the one before it is done. */
  | { readonly kind: "apply"; readonly steps: readonly Step[] }
  /** "order": somebody asked for it. "unused": a companion that nothing needs any more. */
  | {
      readonly kind: "delete";
      readonly targets: readonly OwnedTarget[];
      readonly authority: "order" | "unused";
    }
  /** Nothing can be done while this is so. */
  | { readonly kind: "unmet"; readonly reason: string }
  /** Nothing to do yet. */
  | { readonly kind: "later"; readonly afterMs: number }
  | { readonly kind: "nothing" };

export type Step =
  | { readonly kind: "namespace"; readonly name: string }
  | { readonly kind: "object"; readonly object: OwnedObject }
  | { readonly kind: "checked"; readonly object: CheckedObject }
  /** Another key has to be in order first. */
  | { readonly kind: "await"; readonly key: string; readonly isReady: boolean }
  /**
   * Objects beside those of the steps before, made out when their turn comes, because they may name a uid
   * that those have only then. All are tried: what is refused to one of them is not refused to the others.
   */
  | { readonly kind: "each"; steps(): readonly Step[] }
  /** The plan is not complete while this is so; what its other steps do is done all the same. */
  | { readonly kind: "unmet"; readonly reason: string };

/** An object of a watched kind; its steps are made by `ownedStep` and `ownedTarget`, which hide its types. */
export interface OwnedObject {
  readonly kind: ResourceKind;
  readonly ref: ObjectRef;
  /** The hash of the manifest's content; see applied-content.ts. */
  readonly contentHash: string;
  readonly refusesStrangers: boolean;
  manifest(): KubeObject;
  live(): LiveEntry | undefined;
  /** What an object that the cache does not show looks like. */
  entryOf(object: KubeObject): LiveEntry;
  wrote(object: KubeObject): LiveEntry;
}

export interface OwnedTarget {
  readonly kind: ResourceKind;
  readonly ref: ObjectRef;
  live(): LiveEntry | undefined;
  /** Where the cache shows none it may still be there, without the labels that it is found by. */
  readonly isLookedUp: boolean;
  entryOf(object: KubeObject): LiveEntry;
  deleted(uid: string): void;
}

export interface LiveEntry {
  readonly uid: string;
  readonly contentHash: string;
  /** Whose it is, and whether it stands for the wanted id. */
  readonly ownership: Ownership;
  readonly deleting: boolean;
  readonly createdAt: string | undefined;
}

/** An object that is not watched: it is read by its one name and compared. */
export interface CheckedObject {
  readonly kind: ResourceKind;
  readonly ref: ObjectRef;
  manifest(): KubeObject;
  isCurrent(live: KubeObject): boolean;
  judge(live: KubeObject): Ownership;
}

interface OwnedOptions<T extends KubeObject, P> {
  readonly key: string;
  readonly ref: ObjectRef;
  /** Asked for only when it is needed. */
  contentHash(): string;
  /**
   * The server refuses an apply without force onto any object of this name that somebody else made, because
   * a field that says whose it is cannot be equal in both. Default false.
   */
  readonly refusesStrangers?: boolean;
  manifest(): T;
  judge(live: P): Ownership;
}

export function ownedObject<T extends KubeObject, P extends LiveProjection, I extends string>(
  watched: WatchedKind<T, P, I>,
  options: OwnedOptions<T, P>,
): OwnedObject {
  return new WatchedObject(watched, options);
}

// A class, because a plan is made for every object once a minute, and closures in its place would be a kilobyte.
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

  manifest(): KubeObject {
    return this.options.manifest();
  }

  live(): LiveEntry | undefined {
    const entry = this.watched.get(this.options.key);
    return entry && liveEntry(entry, this.options.judge);
  }

  entryOf(object: KubeObject): LiveEntry {
    return liveEntry(this.watched.entryOf(object as T), this.options.judge);
  }

  wrote(object: KubeObject): LiveEntry {
    return liveEntry(this.watched.wrote(object as T), this.options.judge);
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
    deleted: (uid) => watched.deleted(ref, uid),
  };
}

function liveEntry<P extends LiveProjection>(
  entry: { readonly uid: string; readonly hash?: string; readonly value: P },
  judge: (live: P) => Ownership,
): LiveEntry {
  const { deleting, createdAt } = entry.value;
  return {
    uid: entry.uid,
    contentHash: entry.hash ?? "",
    ownership: judge(entry.value),
    deleting,
    createdAt,
  };
}
