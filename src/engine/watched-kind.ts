// A controller's view of one kind: the cache, overlaid with the controller's own recent writes. Without the overlay, a
// worker that writes and reads back would decide on stale state, because the watch event of its own write is still
// under way; waiting for that event would cost a round trip per write. A response may be wrong, so a write whose event
// does not arrive within minutes, on a watch that works, is dropped: the cache is what the server really has.
import type { Clock } from "../concurrency/clock.ts";
import type { Random } from "../concurrency/random.ts";
import type { DeleteOutcome, KubeApi, Selection } from "../kube/api.ts";
import {
  type CacheChange,
  type CacheEntry,
  hasReached,
  type Intern,
  ObjectCache,
  objectKey,
} from "../kube/object-cache.ts";
import { Reflector } from "../kube/reflector.ts";
import { serverDefaultsOf } from "../kube/server-defaults.ts";
import type { KubeObject, ObjectRef, ResourceKind } from "../kube/types.ts";
import { type Ownership, rememberOwnership } from "../model/ownership.ts";
import type { Seal } from "../model/seal.ts";
import { type AllowedFields, appliedContentHash, driftedFieldsOf } from "./applied-content.ts";
import { Departures } from "./departures.ts";
import { createTolerance, type DriftTolerance, noTolerance } from "./drift-tolerance.ts";
import type { DriftedField } from "./drifted-fields.ts";

export interface WatchedKindOptions<T extends KubeObject, P, I extends string> {
  readonly kind: ResourceKind<T>;
  readonly selection: Selection;
  readonly project: (object: T, intern: Intern) => P;
  readonly indexes?: Readonly<Record<I, (value: P) => string | undefined>>;
  /** krane writes this kind, so drift is detected. */
  readonly owned: boolean;
  /** The labels that the selection asks for, as this object should have them. Default none. */
  readonly selectedLabelsOf?: (object: T) => Readonly<Record<string, string>>;
  /** Fields that others may add; see drift-tolerance.ts. */
  readonly toleratedFields?: readonly string[];
  /** The controller cannot start without it. False for a kind whose CRD may be missing. */
  readonly required: boolean;
}

export interface WatchedKindDeps {
  readonly api: KubeApi;
  readonly clock: Clock;
  readonly random: Random;
  readonly seal: Seal;
  /** What the operator tolerates; default nothing. */
  readonly tolerance?: DriftTolerance;
  onError(kind: string, error: unknown): void;
}

export interface KindStatus {
  readonly kind: string;
  readonly objects: number;
  readonly synced: boolean;
  readonly lastError: string;
}

type Written<P> = { readonly atMs: number } & (
  | { readonly kind: "put"; readonly entry: CacheEntry<P> }
  | { readonly kind: "gone"; readonly uid: string }
);

interface Owned {
  readonly ownership?: Ownership;
}

// A watch that works has heard from the server since: bookmarks come every minute, and a silent watch is opened again.
const unseenMaxMs = 180_000;

export class WatchedKind<T extends KubeObject, P, I extends string = never> {
  readonly kind: ResourceKind<T>;
  readonly required: boolean;
  readonly owned: boolean;
  readonly cache: ObjectCache<T, P, I>;
  private readonly reflector: Reflector<T, P, I>;
  private readonly departures: Departures<T, P, I>;
  private readonly allowed: AllowedFields;
  /** The labels that the watch selects by, as the object should have them. */
  readonly selectedLabelsOf: (object: T) => Readonly<Record<string, string>>;
  private readonly clock: Clock;
  private readonly api: KubeApi;
  /** Writes whose watch events have not arrived yet. */
  private readonly written = new Map<string, Written<P>>();
  /** The entries made from responses to writes. The watch event of a write brings the same entry again. */
  private readonly own = new WeakSet<CacheEntry<P>>();

  constructor(options: WatchedKindOptions<T, P, I>, deps: WatchedKindDeps) {
    const { kind, selection, project, indexes, owned } = options;
    this.kind = kind;
    this.required = options.required;
    this.selectedLabelsOf = options.selectedLabelsOf ?? (() => ({}));
    this.owned = owned;
    this.allowed = {
      defaults: serverDefaultsOf(kind),
      isTolerated: createTolerance(deps.tolerance ?? noTolerance, options.toleratedFields),
    };
    this.clock = deps.clock;
    this.api = deps.api;
    this.cache = new ObjectCache<T, P, I>({
      project: owned ? (object, intern) => this.recognise(object, project(object, intern)) : project,
      ...(indexes === undefined ? {} : { indexes }),
      ...(owned && {
        hash: (object: T) => this.contentHash(object),
        mayLive: (entry: CacheEntry<P>) => this.mayLive(entry),
        // Kinds that krane writes have such a projection.
        standing: (value: P) => (value as unknown as { readonly ownership: Ownership }).ownership,
      }),
      known: (key) => this.get(key),
    });
    this.departures = new Departures(kind, this.cache, deps);
    this.reflector = new Reflector(
      { kind, selection, cache: this.cache, onError: (error) => deps.onError(kind.kind, error) },
      deps,
    );
    this.cache.subscribe(({ key }) => this.settle(key));
  }

  get synced(): boolean {
    return this.cache.synced;
  }

  /** See Reflector.initial. */
  get initial(): number {
    return this.reflector.initial;
  }

  /** The cache is complete, and its watch is open. */
  get isFollowed(): boolean {
    const { synced, lastError } = this.reflector.state();
    return synced && lastError === undefined;
  }

  /** An open watch shows the object. One that has left the watch may be gone, until a look-up has settled it. */
  isShown(key: string): boolean {
    return this.isFollowed && this.cache.getMissing(key) === undefined;
  }

  /** The server does not have this kind. */
  get isMissing(): boolean {
    return !this.cache.synced && this.reflector.state().lastError?.error.status === 404;
  }

  get(key: string): CacheEntry<P> | undefined {
    const cached = this.cache.get(key);
    const written = this.settle(key);
    if (written?.kind === "put") return written.entry;
    return written?.kind === "gone" && written.uid === cached?.uid ? undefined : cached;
  }

  /** Converts a live object to an entry, without storing it. */
  entryOf(object: T): CacheEntry<P> {
    return this.cache.entryOf(object);
  }

  /** The hash of an object that is not in the cache, such as the response to a dry run; see applied-content.ts. */
  contentHash(object: T): string {
    const hash = appliedContentHash(object, this.allowed);
    // Once krane has put a label back by a patch, its loss no longer shows in what krane applied.
    return this.isLabelled(object) ? hash : `${hash}+unlabelled`;
  }

  /** An object that had a valid seal stays krane's when somebody removes all that shows it. */
  private recognise({ metadata }: T, value: P): P {
    const { ownership } = value as Owned;
    if (ownership?.kind !== "foreign") return value;
    const { name = "", namespace, uid } = metadata ?? {};
    const before = this.get(objectKey(namespace === undefined ? { name } : { name, namespace }));
    if (before === undefined || before.uid !== uid) return value;
    const { ownership: known = ownership } = before.value as Owned;
    return { ...value, ownership: rememberOwnership(ownership, known) };
  }

  private isLabelled(object: T): boolean {
    const labels = object.metadata?.labels;
    return Object.entries(this.selectedLabelsOf(object)).every(([name, value]) => labels?.[name] === value);
  }

  /** Where a live object differs from the manifest that krane applied; without a manifest, what others added. */
  driftOf(object: T, manifest?: T): readonly DriftedField[] {
    return driftedFieldsOf(object, this.allowed, manifest);
  }

  /** Records a write until its watch event arrives. */
  wrote(object: T): CacheEntry<P> {
    const entry = this.cache.entryOf(object);
    this.own.add(entry);
    this.written.set(entry.key, { kind: "put", entry, atMs: this.clock.nowMs() });
    this.settle(entry.key);
    return entry;
  }

  /** Whether the change is the event of this controller's own write, which it has already taken into account. */
  isOwnWrite(change: CacheChange<P>): boolean {
    return change.kind !== "deleted" && this.own.has(change.after);
  }

  /** Deletes an object, and records that it is gone until its watch event arrives. */
  delete(ref: ObjectRef, uid: string, send: () => Promise<DeleteOutcome>): Promise<DeleteOutcome> {
    const key = objectKey(ref);
    return this.departures.whileLeaving({ key, uid }, send, () => this.gone(key, uid));
  }

  /** The server says that the object of this uid is gone; the watch may not have shown it yet. */
  gone(key: string, uid: string): void {
    this.written.set(key, { kind: "gone", uid, atMs: this.clock.nowMs() });
    this.cache.settleMissing(key, uid, undefined);
  }

  /** Reads an object again that the cache shows, because it may have changed while no watch was open. */
  async refresh(ref: ObjectRef, signal: AbortSignal): Promise<void> {
    const object = await this.api.get(this.kind, ref, {}, signal);
    const key = objectKey(ref);
    if (object !== undefined) {
      this.written.set(key, { kind: "put", entry: this.cache.entryOf(object), atMs: this.clock.nowMs() });
      return;
    }
    const known = this.get(key);
    if (known !== undefined) this.gone(key, known.uid);
  }

  /** Whether the object exists and the watch does not show it, because it lacks the labels that the watch selects by. */
  isStray(key: string): boolean {
    return this.settle(key) === undefined && this.cache.getMissing(key)?.isFound === true;
  }

  /** Looks for an object that another one names and the watch does not show. Returns false if it is not krane's. */
  find(ref: ObjectRef, uid: string, isOurs: (value: P) => boolean, signal: AbortSignal): Promise<boolean> {
    return this.departures.find(ref, uid, isOurs, signal);
  }

  /** Keeps an object in view that was looked up by its name, so that it does not count as gone. */
  keep(object: T): void {
    this.departures.keep(this.cache.entryOf(object));
  }

  subscribe(listener: (change: CacheChange<P>) => void): () => void {
    return this.cache.subscribe(listener);
  }

  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([this.reflector.run(signal), this.departures.run(signal)]);
  }

  status(): KindStatus {
    const { group, kind } = this.kind;
    const state = this.reflector.state();
    return {
      kind: group === "" ? kind : `${group}/${kind}`,
      objects: this.cache.size,
      synced: state.synced,
      lastError: state.lastError?.error.message ?? "",
    };
  }

  private mayLive(entry: CacheEntry<P>): boolean {
    const written = this.written.get(entry.key);
    if (written?.kind === "gone" && written.uid === entry.uid) return false;
    this.departures.note(entry);
    return true;
  }

  /** Forgets a write as soon as the cache has seen it. */
  private settle(key: string): Written<P> | undefined {
    const written = this.written.get(key);
    if (written === undefined) return undefined;
    const cached = this.cache.get(key);
    const seen =
      written.kind === "gone"
        ? cached?.uid !== written.uid
        : hasReached(this.cache.resourceVersion ?? "0", written.entry.resourceVersion);
    if (!seen && !this.isDoubtful(written)) return written;
    this.written.delete(key);
    return undefined;
  }

  /** The watch should have shown the write by now. */
  private isDoubtful({ atMs }: Written<P>): boolean {
    if (this.clock.nowMs() - atMs < unseenMaxMs) return false;
    return this.isFollowed;
  }
}
