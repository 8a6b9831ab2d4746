// A controller as a table of functions. What it wants and what it sees is its own; how that is streamed,
// queued, applied, repaired, deleted, asked for again and reported is the engine's, and the same for all.
import type { CacheChange } from "../kube/object-cache.ts";
import type { KubeObject } from "../kube/types.ts";
import type { DesiredEntry } from "./desired-store.ts";
import type { OrderedObject } from "./orders.ts";
import type { OwnedTarget, Plan } from "./plan.ts";
import type { Observation } from "./reporter.ts";
import type { KindStatus, WatchedKind } from "./watched-kind.ts";

/** `Seen`: what others may follow of an object. */
export interface ControllerDefinition<Spec, Seen = unknown> {
  /** The kinds that it watches. */
  readonly kinds: readonly DefinedKind[];
  /** The objects in the cluster that stand for keys of the control plane. */
  managed(): Iterable<ManagedObject>;
  managedByKey(key: string): ManagedObject | undefined;
  /** Keys of objects that several others contribute to, and that no message is about. */
  companionKeys(): Iterable<string>;
  /** The live object of the key, where an order made it that is still to be kept. */
  orderedObject?(key: string): OrderedObject | undefined;

  /**
   * The companion keys that the plan of this one would only wait for. They are brought up before it, or
   * each of a thousand keys that come at once would be looked at in vain first.
   */
  prerequisites?(entry: DesiredEntry<Spec>): Iterable<string>;
  plan(key: string, entry: DesiredEntry<Spec> | undefined): Plan;
  /** What goes when nobody wants the key any more. */
  targets(key: string, entry: DesiredEntry<Spec> | undefined): readonly OwnedTarget[];
  observe(key: string): Observation | undefined;
  /** What is there of an object of ours; undefined where there is none. */
  seen?(key: string): Seen | undefined;
  /** How many of its pods are ready, and how many it should have. */
  readiness(key: string): { readonly ready: number; readonly total: number };
  /** Why pods of it cannot run, by key; of those whose pods can, nothing. */
  failing(): ReadonlyMap<string, string>;
}

export interface ManagedObject {
  readonly key: string;
  /** Undefined on an object that does not say; it cannot be asked for. */
  readonly id: string | undefined;
  /** It was ordered by a call, and the control plane need not know it. */
  readonly isOrdered?: boolean;
}

/** Which keys a change in the cluster concerns. */
export interface ChangedKeys {
  readonly reconcile: readonly string[];
  readonly report: readonly string[];
}

export interface DefinedKind {
  readonly required: boolean;
  readonly synced: boolean;
  status(): KindStatus;
  run(signal: AbortSignal): Promise<void>;
  whenSynced(signal: AbortSignal): Promise<void>;
  subscribe(listener: (changed: ChangedKeys) => void): () => void;
}

/** `waiting`: the keys that nothing could be done about before the kind was known; a missing CRD may come late. */
export function defineKind<T extends KubeObject, P, I extends string>(
  watched: WatchedKind<T, P, I>,
  keysOf: (change: CacheChange<P>) => ChangedKeys,
  waiting: () => Iterable<string> = () => [],
): DefinedKind {
  return {
    required: watched.required,
    get synced() {
      return watched.synced;
    },
    status: () => watched.status(),
    run: (signal) => watched.run(signal),
    whenSynced: (signal) => watched.cache.whenSynced(signal),
    subscribe(listener) {
      const ending = new AbortController();
      const unsubscribe = watched.subscribe((change) => listener(keysOf(change)));
      watched.cache.whenSynced(ending.signal).then(
        () => listener({ reconcile: [...waiting()], report: [] }),
        () => undefined,
      );
      return () => {
        ending.abort();
        unsubscribe();
      };
    },
  };
}

/** Whether a change is one that reconciling would look at, rather than one of status alone. */
export function isContentChange<P extends { readonly deleting: boolean }>(change: CacheChange<P>): boolean {
  if (change.kind !== "changed") return true;
  const { before, after } = change;
  return before.hash !== after.hash || before.value.deleting !== after.value.deleting;
}
