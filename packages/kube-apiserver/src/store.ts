// Stores all objects and the ordered log of their changes. Every change increments one counter, which is its
// resourceVersion; nothing else does.
//
// The log is bounded. Reading a state or changes from before its start throws an ExpiredError, as etcd does after a
// compaction. Objects in the store are shared and immutable; a change replaces them.

import type { JsonObject } from "./json.ts";
import type { ResourceKind } from "./types.ts";

export type ResourceId = Pick<ResourceKind, "group" | "plural">;

export interface ObjectKey extends ResourceId {
  /** "" for cluster-wide kinds. */
  readonly namespace: string;
  readonly name: string;
}

export interface StoredObject extends JsonObject {
  apiVersion: string;
  kind: string;
  metadata: JsonObject;
}

export interface Change {
  readonly revision: number;
  readonly key: ObjectKey;
  /** The object after the change; for a removal, its last state at the removal's revision. */
  readonly object: StoredObject;
  readonly previous: StoredObject | undefined;
  readonly removed: boolean;
}

export class ExpiredError extends Error {
  override readonly name = "ExpiredError";
  readonly compacted: number;

  constructor(compacted: number) {
    super(`changes up to ${compacted} are gone`);
    this.compacted = compacted;
  }
}

export interface ObjectStoreOptions {
  /** Changes kept for watches and older states. Default 10,000. */
  readonly changesMax?: number;
}

export class ObjectStore {
  private readonly objects = new Map<string, Map<string, StoredObject>>();
  private readonly sorted = new Map<string, readonly string[]>();
  private readonly listeners = new Set<(change: Change) => void>();
  private readonly changesMax: number;
  private log: Change[] = [];
  private counter = 0;
  private compacted = 0;

  constructor(options: ObjectStoreOptions = {}) {
    this.changesMax = options.changesMax ?? 10_000;
  }

  /** The number of the newest change. */
  get revision(): number {
    return this.counter;
  }

  get(key: ObjectKey): StoredObject | undefined {
    return this.objects.get(resourceText(key))?.get(objectText(key.namespace, key.name));
  }

  /** Sorted by namespace and name; "" means all namespaces. */
  list(resource: ResourceId, namespace = ""): StoredObject[] {
    const objects = this.objects.get(resourceText(resource));
    if (objects === undefined) return [];
    const prefix = namespace === "" ? "" : `${namespace}/`;
    return this.sortedKeys(resourceText(resource), objects).flatMap((text) => {
      const object = text.startsWith(prefix) ? objects.get(text) : undefined;
      return object === undefined ? [] : [object];
    });
  }

  /** The list as it was after the given change. */
  listAt(resource: ResourceId, namespace: string, revision: number): StoredObject[] {
    const objects = new Map(this.list(resource, namespace).map((object) => [keyText(object), object]));
    const later = this.changesAfter(revision).filter(
      ({ key }) => isSame(key, resource) && (namespace === "" || key.namespace === namespace),
    );
    for (const { object, previous } of later.reverse()) {
      if (previous === undefined) objects.delete(keyText(object));
      else objects.set(keyText(object), previous);
    }
    return [...objects].sort(([left], [right]) => (left < right ? -1 : 1)).map(([, object]) => object);
  }

  /** Stores the object with the next resourceVersion, and returns it. */
  put(key: ObjectKey, object: StoredObject): StoredObject {
    const previous = this.get(key);
    const stored = this.numbered(object);
    const resource = resourceText(key);
    const objects = this.objects.get(resource) ?? new Map<string, StoredObject>();
    this.objects.set(resource, objects);
    if (previous === undefined) this.sorted.delete(resource);
    objects.set(objectText(key.namespace, key.name), stored);
    this.append({ revision: this.counter, key, object: stored, previous, removed: false });
    return stored;
  }

  /** Returns the removed object with the removal's resourceVersion. */
  remove(key: ObjectKey): StoredObject | undefined {
    const previous = this.get(key);
    if (previous === undefined) return undefined;
    const resource = resourceText(key);
    const object = this.numbered(previous);
    this.objects.get(resource)?.delete(objectText(key.namespace, key.name));
    this.sorted.delete(resource);
    this.append({ revision: this.counter, key, object, previous, removed: true });
    return object;
  }

  /** In order. Throws an ExpiredError if some of them are gone. */
  changesAfter(revision: number): Change[] {
    if (revision < this.compacted) throw new ExpiredError(this.compacted);
    return this.log.slice(revision - this.compacted);
  }

  /** Drops the changes up to this one. */
  compact(revision = this.counter): void {
    const upTo = Math.min(revision, this.counter);
    if (upTo <= this.compacted) return;
    this.log = this.log.slice(upTo - this.compacted);
    this.compacted = upTo;
  }

  /** Calls the listener synchronously on each change, in order. Returns a function that unsubscribes it. */
  subscribe(listener: (change: Change) => void): () => void {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }

  private append(change: Change): void {
    this.log.push(change);
    // Trimming the log rarely, and in large pieces, keeps appends cheap.
    if (this.log.length >= this.changesMax * 2) this.compact(this.counter - this.changesMax);
    for (const listener of [...this.listeners]) listener(change);
  }

  private numbered(object: StoredObject): StoredObject {
    this.counter++;
    return { ...object, metadata: { ...object.metadata, resourceVersion: String(this.counter) } };
  }

  private sortedKeys(resource: string, objects: ReadonlyMap<string, StoredObject>): readonly string[] {
    const known = this.sorted.get(resource);
    if (known !== undefined) return known;
    const keys = [...objects.keys()].sort();
    this.sorted.set(resource, keys);
    return keys;
  }
}

export function isSame(left: ResourceId, right: ResourceId): boolean {
  return left.plural === right.plural && left.group === right.group;
}

/** `namespace/name`, the sort key of lists. */
export function keyText(object: StoredObject): string {
  const { namespace, name } = object.metadata;
  return objectText(typeof namespace === "string" ? namespace : "", String(name));
}

function objectText(namespace: string, name: string): string {
  return `${namespace}/${name}`;
}

function resourceText({ group, plural }: ResourceId): string {
  return `${group}/${plural}`;
}
