// A cache of one kind of object. It keeps a projection of each object with the few fields that are read, because whole
// pods would take twenty times the memory.
//
// - An object never goes back: an event older than the cached object, or than its deletion, changes nothing.
// - A new uid under the same name is a new object: listeners see a deletion and an addition.
// - Listeners get each transition once, after the cache holds all of it.
// - An object that the watch no longer shows may have lost the labels that the cache selects by. If the cache has a
//   `mayLive`, such an object stays in it as it was until a look-up settles whether it is gone.
import { onAbort } from "../concurrency/abort-listener.ts";
import type { KubeObject, ObjectRef } from "./types.ts";

export interface CacheEntry<P> {
  /** namespace/name, or only the name for cluster-scoped kinds. */
  readonly key: string;
  readonly uid: string;
  readonly resourceVersion: string;
  /** Absent if the cache has no hash function. */
  readonly hash?: string;
  readonly value: P;
}

export type CacheChange<P> =
  | { readonly kind: "added"; readonly key: string; readonly after: CacheEntry<P> }
  | {
      readonly kind: "changed";
      readonly key: string;
      readonly before: CacheEntry<P>;
      readonly after: CacheEntry<P>;
    }
  | { readonly kind: "deleted"; readonly key: string; readonly before: CacheEntry<P> };

export interface ObjectCacheOptions<T extends KubeObject, P, I extends string> {
  /**
   * What to keep. The result must not reference the object, or parts of it that are not read. `intern` is for strings
   * that many objects share.
   */
  readonly project: (object: T, intern: Intern) => P;
  /** A hash of the fields that are checked for drift. */
  readonly hash?: (object: T) => string;
  readonly indexes?: Readonly<Record<I, (value: P) => string | undefined>>;
  /**
   * Called when the watch no longer shows an object: whether it may still exist. If so, it is missing until
   * settleMissing() is called. Default: it is gone.
   */
  readonly mayLive?: (entry: CacheEntry<P>) => boolean;
  /** What decides how an object counts, besides that it exists; see `revision`. Default nothing. */
  readonly standing?: (value: P) => unknown;
  /** Another place to look for an existing entry; default: only the cache. */
  readonly known?: (key: string) => CacheEntry<P> | undefined;
}

/** An object that the watch no longer shows, and that may exist. */
interface Missing {
  /** The newest version that is known: of its disappearance, or of the last look-up. */
  readonly resourceVersion: string;
  /** A look-up has found it: it only lacks the labels that the watch selects by. */
  readonly isFound: boolean;
}

// Deletions are remembered so that a late event cannot bring an object back. When the oldest is dropped, every event
// up to its version counts as old.
const tombstonesMax = 1_000;

// join() builds a flat string; a template literal would keep a rope with both parts.
export function objectKey({ namespace, name }: ObjectRef): string {
  return namespace === undefined ? name : [namespace, name].join("/");
}

export class ObjectCache<T extends KubeObject, P, I extends string = never> {
  private readonly options: ObjectCacheOptions<T, P, I>;
  private readonly entries = new Map<string, CacheEntry<P>>();
  private readonly indexes = new Map<string, CacheIndex<CacheEntry<P>>>();
  private readonly tombstones = new Map<string, string>();
  private readonly missing = new Map<string, Missing>();
  private readonly listeners = new Set<(change: CacheChange<P>) => void>();
  private readonly onSynced = new Set<() => void>();
  private readonly intern = createInterner();
  private readonly barrier = new VersionBarrier();
  private changes = 0;
  /** An object of this version or older that is not cached does not exist. */
  private goneUpTo = "0";

  constructor(options: ObjectCacheOptions<T, P, I>) {
    this.options = options;
    for (const [name, nameOf] of Object.entries<(value: P) => string | undefined>(options.indexes ?? {})) {
      this.indexes.set(name, new CacheIndex((entry) => nameOf(entry.value)));
    }
  }

  get size(): number {
    return this.entries.size;
  }

  /** Grows when an object is added, removed or replaced by another, and when its standing changes. */
  get revision(): number {
    return this.changes;
  }

  /** False until the first complete state has arrived; before that, absence means nothing. */
  get synced(): boolean {
    return this.barrier.resourceVersion !== undefined;
  }

  get resourceVersion(): string | undefined {
    return this.barrier.resourceVersion;
  }

  get(key: string): CacheEntry<P> | undefined {
    return this.entries.get(key);
  }

  all(): IterableIterator<CacheEntry<P>> {
    return this.entries.values();
  }

  byIndex(index: I, name: string): readonly CacheEntry<P>[] {
    return this.indexes.get(index)?.get(name) ?? [];
  }

  /** Returns the function that unsubscribes. A listener that throws is a bug, and fails the caller that feeds the cache. */
  subscribe(listener: (change: CacheChange<P>) => void): () => void {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }

  whenSynced(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      if (this.synced) {
        resolve();
        return;
      }
      const done = () => {
        stopListening();
        resolve();
      };
      const stopListening = onAbort(signal, () => {
        this.onSynced.delete(done);
        reject(signal.reason);
      });
      this.onSynced.add(done);
    });
  }

  /** Read your writes: resolves once the cache has reached this version. */
  waitFor(resourceVersion: string, signal: AbortSignal): Promise<void> {
    return this.barrier.waitFor(resourceVersion, signal);
  }

  /** Converts an object to an entry, without storing it. */
  entryOf(object: T): CacheEntry<P> {
    const { name = "", namespace, uid = "", resourceVersion = "" } = object.metadata ?? {};
    const key = objectKey(namespace === undefined ? { name } : { name, namespace });
    // The response to a write and its event carry the same state, and a new list repeats most of the last one.
    const known = this.options.known?.(key) ?? this.entries.get(key);
    if (known?.uid === uid && known.resourceVersion === resourceVersion) return known;
    const value = this.options.project(object, this.intern);
    const hash = this.options.hash?.(object);
    return hash === undefined
      ? { key, uid, resourceVersion, value }
      : { key, uid, resourceVersion, value, hash };
  }

  put(after: CacheEntry<P>): void {
    const before = this.entries.get(after.key);
    const missing = this.missing.get(after.key);
    // The look-up was faster than the watch.
    if (missing?.isFound && before?.uid === after.uid && after.resourceVersion === missing.resourceVersion)
      this.missing.delete(after.key);
    const newest =
      missing?.resourceVersion ?? before?.resourceVersion ?? this.tombstones.get(after.key) ?? this.goneUpTo;
    if (hasReached(newest, after.resourceVersion)) return;
    this.store(after, before);
    this.barrier.advance(after.resourceVersion);
    this.tell(transitions(before, after));
  }

  remove({ key, resourceVersion }: CacheEntry<P>): void {
    const before = this.entries.get(key);
    if (before !== undefined && isOlder(resourceVersion, before.resourceVersion)) return;
    this.barrier.advance(resourceVersion);
    if (before !== undefined && this.isKept(before, resourceVersion)) return;
    this.bury(key, resourceVersion);
    if (before === undefined) return;
    this.drop(before);
    this.tell(transitions(before, undefined));
  }

  /** An object that the watch no longer shows. */
  getMissing(key: string): (CacheEntry<P> & Pick<Missing, "isFound">) | undefined {
    const entry = this.entries.get(key);
    const missing = this.missing.get(key);
    return entry && missing && { ...entry, isFound: missing.isFound };
  }

  /** The result of looking up a missing object: what has its name now, if anything does. */
  settleMissing(key: string, uid: string, found: CacheEntry<P> | undefined): void {
    const before = this.entries.get(key);
    const missing = this.missing.get(key);
    // Otherwise the watch has shown it, or another object, since.
    if (before === undefined || missing === undefined || before.uid !== uid) return;
    if (found?.uid === uid) {
      if (before !== found) this.store(found, before);
      this.missing.set(key, { resourceVersion: found.resourceVersion, isFound: true });
      if (before !== found) this.tell(transitions(before, found));
      return;
    }
    this.bury(key, missing.resourceVersion);
    this.drop(before);
    this.tell(transitions(before, undefined));
  }

  /** Adds an object that the watch does not show, found in another way. */
  addFound(found: CacheEntry<P>): void {
    if (this.entries.has(found.key)) return;
    this.store(found, undefined);
    this.missing.set(found.key, { resourceVersion: found.resourceVersion, isFound: true });
    this.tell(transitions(undefined, found));
  }

  /** Takes the complete state as of one version. Objects that it lacks were deleted while no watch was open. */
  replace(entries: Iterable<CacheEntry<P>>, resourceVersion: string): void {
    const wasSynced = this.synced;
    const changes: CacheChange<P>[] = [];
    const listed = new Set<string>();
    for (const after of entries) {
      const before = this.entries.get(after.key);
      listed.add(after.key);
      this.missing.delete(after.key);
      if (before?.uid === after.uid && before.resourceVersion === after.resourceVersion) continue;
      this.store(after, before);
      changes.push(...transitions(before, after));
    }
    for (const before of this.entries.values()) {
      if (listed.has(before.key) || this.isKept(before, resourceVersion)) continue;
      this.drop(before);
      changes.push(...transitions(before, undefined));
    }
    this.tombstones.clear();
    this.goneUpTo = resourceVersion;
    this.barrier.reset(resourceVersion);
    this.tell(changes);
    if (!wasSynced) for (const done of this.onSynced) done();
    this.onSynced.clear();
  }

  /** No object of this cache changed up to this version. */
  advance(resourceVersion: string): void {
    this.barrier.advance(resourceVersion);
  }

  private store(after: CacheEntry<P>, before: CacheEntry<P> | undefined): void {
    if (before !== undefined) for (const index of this.indexes.values()) index.remove(before);
    for (const index of this.indexes.values()) index.add(after);
    this.entries.set(after.key, after);
    if (before?.uid !== after.uid || this.standingOf(before) !== this.standingOf(after)) this.changes += 1;
    this.tombstones.delete(after.key);
    this.missing.delete(after.key);
  }

  private standingOf({ value }: CacheEntry<P>): unknown {
    return this.options.standing?.(value);
  }

  private isKept(before: CacheEntry<P>, resourceVersion: string): boolean {
    if (!this.options.mayLive?.(before)) return false;
    const isFound = this.missing.get(before.key)?.isFound ?? false;
    this.missing.set(before.key, { resourceVersion, isFound });
    return true;
  }

  private drop(before: CacheEntry<P>): void {
    for (const index of this.indexes.values()) index.remove(before);
    this.entries.delete(before.key);
    this.missing.delete(before.key);
    this.changes += 1;
  }

  private bury(key: string, resourceVersion: string): void {
    const earlier = this.tombstones.get(key);
    if (earlier !== undefined && isOlder(resourceVersion, earlier)) return;
    this.tombstones.delete(key);
    this.tombstones.set(key, resourceVersion);
    if (this.tombstones.size <= tombstonesMax) return;
    for (const [oldest, deletedAt] of this.tombstones) {
      this.tombstones.delete(oldest);
      if (isOlder(this.goneUpTo, deletedAt)) this.goneUpTo = deletedAt;
      return;
    }
  }

  private tell(changes: readonly CacheChange<P>[]): void {
    for (const change of changes) for (const listener of this.listeners) listener(change);
  }
}

function transitions<P>(
  before: CacheEntry<P> | undefined,
  after: CacheEntry<P> | undefined,
): readonly CacheChange<P>[] {
  if (before !== undefined && after !== undefined && before.uid === after.uid) {
    return [{ kind: "changed", key: after.key, before, after }];
  }
  const changes: CacheChange<P>[] = [];
  if (before !== undefined) changes.push({ kind: "deleted", key: before.key, before });
  if (after !== undefined) changes.push({ kind: "added", key: after.key, after });
  return changes;
}

const arrayMax = 16;

/**
 * Groups entries by a shared property, such as the pods of one deployment, so that they are found without a scan.
 * Small groups are arrays of exact size, which take half the memory of a Set; large ones become a Set, so that a
 * change never scans thousands of entries.
 */
export class CacheIndex<E> {
  private readonly groups = new Map<string, readonly E[] | Set<E>>();
  private readonly nameOf: (entry: E) => string | undefined;

  constructor(nameOf: (entry: E) => string | undefined) {
    this.nameOf = nameOf;
  }

  add(entry: E): void {
    const name = this.nameOf(entry);
    if (name === undefined) return;
    const group = this.groups.get(name) ?? [];
    if (group instanceof Set) group.add(entry);
    // concat() allocates the exact size; a spread would reserve room for sixteen more.
    else this.groups.set(name, group.length < arrayMax ? group.concat([entry]) : new Set([...group, entry]));
  }

  remove(entry: E): void {
    const name = this.nameOf(entry);
    const group = name === undefined ? undefined : this.groups.get(name);
    if (name === undefined || group === undefined) return;
    const left = group instanceof Set ? group : group.filter((one) => one !== entry);
    if (left instanceof Set) left.delete(entry);
    else this.groups.set(name, left);
    if ((left instanceof Set ? left.size : left.length) === 0) this.groups.delete(name);
  }

  get(name: string): readonly E[] {
    return [...(this.groups.get(name) ?? [])];
  }
}

export type Intern = <S extends string | undefined>(text: S) => S;

const tableMax = 1_024;

/**
 * Deduplicates strings. Every parsed object brings its own copy of the same labels and ids, and the cache would keep
 * them all. Two generations of the table keep the memory bounded (K10), while strings in use stay known.
 */
function createInterner(): Intern {
  let young = new Map<string, string>();
  let old = new Map<string, string>();
  return <S extends string | undefined>(text: S): S => {
    if (text === undefined) return text;
    const known = young.get(text) ?? old.get(text) ?? text;
    if (young.size >= tableMax) {
      old = young;
      young = new Map();
    }
    young.set(known, known);
    return known as S;
  };
}

// Lets a writer wait until the cache has seen its own write, so that it does not decide on stale state. One number is
// enough: events arrive in the order of their resourceVersions.

interface Waiter {
  readonly resourceVersion: string;
  readonly resolve: () => void;
}

class VersionBarrier {
  private seen: string | undefined;
  private readonly waiters = new Set<Waiter>();

  get resourceVersion(): string | undefined {
    return this.seen;
  }

  /** Never goes back: an old or repeated event changes nothing. */
  advance(resourceVersion: string): void {
    if (this.seen === undefined || !isOlder(resourceVersion, this.seen)) this.reset(resourceVersion);
  }

  /** For a new list, whose version counts even if it is lower. */
  reset(resourceVersion: string): void {
    this.seen = resourceVersion;
    for (const waiter of this.waiters) {
      if (!hasReached(resourceVersion, waiter.resourceVersion)) continue;
      this.waiters.delete(waiter);
      waiter.resolve();
    }
  }

  /** Rejects with the signal's reason if the signal aborts first. */
  waitFor(resourceVersion: string, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      if (this.seen !== undefined && hasReached(this.seen, resourceVersion)) {
        resolve();
        return;
      }
      const waiter = {
        resourceVersion,
        resolve: () => {
          stopListening();
          resolve();
        },
      };
      const stopListening = onAbort(signal, () => {
        this.waiters.delete(waiter);
        reject(signal.reason);
      });
      this.waiters.add(waiter);
    });
  }
}

// A resourceVersion is a decimal number of any length, so it is compared as a string: numbers would collide above 2^53, and
// a BigInt per event would be needless garbage.
const decimal = /^(0|[1-9][0-9]*)$/;

/** Whether a is older than b; false if the two cannot be compared, so that nothing is dropped by mistake. */
export function isOlder(a: string, b: string): boolean {
  if (a === b || !decimal.test(a) || !decimal.test(b)) return false;
  return a.length === b.length ? a < b : a.length < b.length;
}

/** Whether version a includes version b. */
export function hasReached(a: string, b: string): boolean {
  return a === b || isOlder(b, a);
}
