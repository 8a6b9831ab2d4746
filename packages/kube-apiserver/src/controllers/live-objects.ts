// A cache of all objects of one kind. It has the newer of what the watch delivered and what the controllers' own writes
// returned, so that a controller does not repeat a write that the watch has not delivered yet.
import type { LabelSelector } from "kubernetes-types/meta/v1.js";
import { selectorMatches } from "../kinds/label-selectors.ts";
import type { KubeObject } from "../types.ts";

const none: ReadonlySet<string> = new Set();

export type ChangeListener<T extends KubeObject> = (object: T | undefined, previous: T | undefined) => void;

export class LiveObjects<T extends KubeObject = KubeObject> {
  private readonly objects = new Map<string, T>();
  private readonly byUid = new Map<string, string>();
  private readonly byOwner = new Map<string, Set<string>>();
  private readonly byLabel = new Map<string, Set<string>>();
  private readonly byNamespace = new Map<string, Map<string, T>>();
  private readonly listeners: ChangeListener<T>[] = [];
  /** Deleted by a controller, but not yet by the watch. */
  private readonly condemned = new Set<string>();
  private markSynced: () => void = () => undefined;
  /** Resolves after the first list. */
  readonly synced = new Promise<void>((resolve) => {
    this.markSynced = resolve;
  });

  get(key: string): T | undefined {
    return this.objects.get(key);
  }

  /** In the order of arrival, like all results here. */
  all(): T[] {
    return [...this.objects.values()];
  }

  inNamespace(namespace: string): T[] {
    return [...(this.byNamespace.get(namespace)?.values() ?? [])];
  }

  /**
   * The objects of a namespace that match the selector. Only those with the rarest of its labels are checked, so that
   * many selectors do not scan every object.
   */
  selectedBy(selector: LabelSelector | undefined, namespace: string): T[] {
    const picks = ({ metadata }: T) => selectorMatches(selector, metadata?.labels);
    const labels = Object.entries(selector?.matchLabels ?? {});
    if (labels.length === 0) return this.inNamespace(namespace).filter(picks);
    const [rarest = none] = labels
      .map(([name, value]) => this.byLabel.get(labelKey(namespace, name, value)) ?? none)
      .sort((left, right) => left.size - right.size);
    return [...rarest].flatMap((key) => this.objects.get(key) ?? []).filter(picks);
  }

  withUid(uid: string): T | undefined {
    return this.objects.get(this.byUid.get(uid) ?? "");
  }

  /** Objects without an owner are under "". */
  ownedBy(uid: string): T[] {
    return [...(this.byOwner.get(uid) ?? [])].flatMap((key) => this.objects.get(key) ?? []);
  }

  onChange(listener: ChangeListener<T>): void {
    this.listeners.push(listener);
  }

  /** True once a deletion was requested. */
  isLeaving({ metadata }: T): boolean {
    return metadata?.deletionTimestamp !== undefined || this.condemned.has(metadata?.uid ?? "");
  }

  condemn(object: T): void {
    const { uid = "" } = object.metadata ?? {};
    if (this.objects.get(keyOf(object))?.metadata?.uid === uid) this.condemned.add(uid);
  }

  observe(object: T): void {
    const key = keyOf(object);
    const previous = this.objects.get(key);
    if (previous !== undefined && versionOf(previous) >= versionOf(object)) return;
    if (previous !== undefined && previous.metadata?.uid !== object.metadata?.uid) this.drop(key, previous);
    if (previous !== undefined) this.unindex(key, previous);
    this.objects.set(key, object);
    this.index(key, object);
    this.tell(object, previous?.metadata?.uid === object.metadata?.uid ? previous : undefined);
  }

  observeRemoval(object: T): void {
    const key = keyOf(object);
    const known = this.objects.get(key);
    this.condemned.delete(object.metadata?.uid ?? "");
    if (known !== undefined && known.metadata?.uid === object.metadata?.uid) this.drop(key, known);
  }

  /** Replaces everything with a new list. */
  replace(objects: readonly T[]): void {
    const present = new Set(objects.map(keyOf));
    for (const [key, object] of [...this.objects]) if (!present.has(key)) this.drop(key, object);
    for (const object of objects) this.observe(object);
    this.markSynced();
  }

  private drop(key: string, object: T): void {
    this.objects.delete(key);
    this.condemned.delete(object.metadata?.uid ?? "");
    this.unindex(key, object);
    this.tell(undefined, object);
  }

  private index(key: string, object: T): void {
    this.byUid.set(object.metadata?.uid ?? "", key);
    for (const uid of ownersOf(object)) addTo(this.byOwner, uid, key);
    for (const label of labelKeysOf(object)) addTo(this.byLabel, label, key);
    const { namespace = "" } = object.metadata ?? {};
    const neighbours = this.byNamespace.get(namespace) ?? new Map<string, T>();
    this.byNamespace.set(namespace, neighbours.set(key, object));
  }

  private unindex(key: string, object: T): void {
    this.byUid.delete(object.metadata?.uid ?? "");
    for (const uid of ownersOf(object)) removeFrom(this.byOwner, uid, key);
    for (const label of labelKeysOf(object)) removeFrom(this.byLabel, label, key);
    const { namespace = "" } = object.metadata ?? {};
    const neighbours = this.byNamespace.get(namespace);
    neighbours?.delete(key);
    if (neighbours?.size === 0) this.byNamespace.delete(namespace);
  }

  private tell(object: T | undefined, previous: T | undefined): void {
    for (const listener of this.listeners) listener(object, previous);
  }
}

/** `namespace/name`; `/name` for cluster-wide objects. */
export function keyOf({ metadata }: Pick<KubeObject, "metadata">): string {
  return `${metadata?.namespace ?? ""}/${metadata?.name ?? ""}`;
}

/** One label in one namespace. No part can contain the separator. */
export function labelKey(namespace: string, name: string, value: string): string {
  return `${namespace}|${name}=${value}`;
}

export function labelKeysOf({ metadata }: Pick<KubeObject, "metadata">): string[] {
  return Object.entries(metadata?.labels ?? {}).map(([name, value]) =>
    labelKey(metadata?.namespace ?? "", name, value),
  );
}

function versionOf({ metadata }: KubeObject): number {
  return Number(metadata?.resourceVersion ?? 0);
}

function ownersOf({ metadata }: KubeObject): readonly string[] {
  const owners = metadata?.ownerReferences ?? [];
  return owners.length === 0 ? [""] : owners.map(({ uid }) => uid);
}

function addTo(index: Map<string, Set<string>>, value: string, key: string): void {
  const keys = index.get(value);
  if (keys === undefined) index.set(value, new Set([key]));
  else keys.add(key);
}

function removeFrom(index: Map<string, Set<string>>, value: string, key: string): void {
  const keys = index.get(value);
  keys?.delete(key);
  if (keys?.size === 0) index.delete(value);
}
