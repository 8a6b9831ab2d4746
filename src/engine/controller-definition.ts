// What a kind provides so that the engine can run its controller: what the cluster should hold, and what is observed.
// Streaming, queueing, applying, repairing, deleting, resyncing and reporting are the engine's, the same for all kinds.
import { isDeepStrictEqual } from "node:util";
import type { DescMessage, MessageInitShape } from "@bufbuild/protobuf";
import { DeadlineError, withTimeout } from "../concurrency/abort.ts";
import type { Clock } from "../concurrency/clock.ts";
import type { CacheChange, CacheEntry } from "../kube/object-cache.ts";
import type { KubeObject } from "../kube/types.ts";
import type { DesiredEntry, DesiredStore } from "./desired-store.ts";
import type { LiveProjection, OwnedTarget, Plan } from "./plan.ts";
import type { ReplacementBudget } from "./pod-replacement.ts";
import type { Observation } from "./reporter.ts";
import type { KindStatus, WatchedKind, WatchedKindDeps } from "./watched-kind.ts";

/** What a kind's definition is created with. */
export interface DefinitionDeps<Spec, Report extends DescMessage> extends WatchedKindDeps {
  readonly store: DesiredStore<Spec>;
  readonly clock: Clock;
  /** Whether desired state has been read: an object that it does not name is not wanted. */
  isInformed(): boolean;
  /** Sends a report to the control plane. */
  report(report: MessageInitShape<Report>, signal: AbortSignal): Promise<void>;
}

/** The options of every controller that kinds need as well. */
export interface DefinitionOptions {
  /** The budget for ending pods is the one for deleting objects. */
  readonly deletion: ReplacementBudget;
}

/** What creating the controller of a kind takes. */
export interface ControllerRecipe<Spec, Report extends DescMessage, Seen, Settings> {
  define(
    settings: Settings & DefinitionOptions,
    deps: DefinitionDeps<Spec, Report>,
  ): ControllerDefinition<Spec, Seen>;
  readonly groupOf?: (entry: DesiredEntry<Spec>) => string | undefined;
}

/** `Seen`: what other parts of krane can observe of an object. */
export interface ControllerDefinition<Spec, Seen = unknown> {
  /** The Kubernetes kinds that it watches. */
  readonly watchedKinds: readonly DefinedKind[];
  /** The objects in the cluster that belong to keys of the control plane. */
  managed(): Iterable<ManagedObject>;
  managedByKey(key: string): ManagedObject | undefined;
  /**
   * Keys of objects that several keys share, and that no message of the control plane names. They have a prefix that
   * ends with a colon.
   */
  companionKeys(): Iterable<string>;

  /**
   * The companion keys that the plan of this key waits for. They are enqueued before it; otherwise each of a thousand
   * keys that arrive at once would be reconciled one time too many.
   */
  prerequisites?(entry: DesiredEntry<Spec>): Iterable<string>;
  /** The companion keys that derive from this one. They are enqueued when it is forgotten: until then they count it. */
  dependents?(entry: DesiredEntry<Spec>): Iterable<string>;
  plan(key: string, entry: DesiredEntry<Spec> | undefined): Plan;
  /** What to delete when the key is no longer wanted. */
  targets(key: string, entry: DesiredEntry<Spec> | undefined): readonly OwnedTarget[];
  observe(key: string): Observation | "unclear" | undefined;
  /** The observed state of an object of krane's; undefined if it is missing. */
  seen?(key: string): Seen | undefined;
  /** The object of the key as its watch shows it; undefined unless it is sealed, not being deleted, and the watch works. */
  liveObject?(key: string): WatchedObject | undefined;
  /** Looks for objects of krane's that lost the labels that its watches select by, while no watch was open. */
  findStrays?(signal: AbortSignal): Promise<void>;
  /** How many of its pods are ready, and how many it should have. */
  readiness(key: string): { readonly ready: number; readonly total: number };
  /** How many running pods are the original's; see `ControllerStatus.original_pods`. Default 0. */
  originalPods?(): number;
  /** Whether any pod may be the original's, also while desired state is not there yet. Default false. */
  mayHaveOriginalPods?(): boolean;
  /** Why pods cannot run, by key; only keys with such pods. */
  failing(): ReadonlyMap<string, string>;
}

/** The identity and content of a live object, as a watch shows it. */
export interface WatchedObject {
  readonly uid: string;
  readonly resourceVersion: string;
  /** Grows with every change of the spec. */
  readonly generation: number;
  /** Of the content that krane applies. */
  readonly hash: string | undefined;
}

/** The namespace of a key: `acme` of `acme/web` and of the companion key `policy:acme/env_1`. */
export function namespaceOf(key: string): string {
  return key.slice(key.indexOf(":") + 1).split("/", 1)[0] ?? "";
}

export interface ManagedObject {
  readonly key: string;
  /** Undefined if the object carries no id; the resync cannot ask for it then. */
  readonly id: string | undefined;
  /** False if neither a seal nor desired state proves it krane's: it is asked for, but does not count. Default true. */
  readonly isProven?: boolean;
}

/** Which keys a change in the cluster concerns. */
export interface ChangedKeys {
  readonly reconcile: readonly string[];
  readonly report: readonly string[];
}

/** A cached object of a kind that krane writes. */
export type OwnedEntry = Pick<CacheEntry<LiveProjection>, "key" | "uid" | "value">;

export interface DefinedKind {
  readonly required: boolean;
  readonly synced: boolean;
  status(): KindStatus;
  /** Grows when an object is added or removed, or its ownership changes. */
  readonly revision: number;
  /** Grows as long as reading its complete state makes headway. */
  readonly initial: number;
  /** The cached objects of a kind that krane writes; undefined for other kinds. */
  readonly owned: Iterable<OwnedEntry> | undefined;
  /** Whether these are all: the cache is synced, or the cluster does not have the kind. */
  readonly isComplete: boolean;
  run(signal: AbortSignal): Promise<void>;
  whenSynced(signal: AbortSignal): Promise<void>;
  subscribe(listener: (changed: ChangedKeys) => void): () => void;
}

/** `waiting`: the keys to reconcile once the kind is synced, which may be late if its CRD was missing. */
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
    get revision() {
      return watched.cache.revision;
    },
    get initial() {
      return watched.initial;
    },
    get isComplete() {
      return watched.synced || watched.isMissing;
    },
    get owned() {
      // Kinds that krane writes have such a projection; defineKind is called for both.
      return watched.owned ? (watched.cache.all() as Iterable<unknown> as Iterable<OwnedEntry>) : undefined;
    },
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

/** Whether a change concerns what krane applies or its seal, rather than the status alone. */
export function isContentChange<P extends Pick<LiveProjection, "deleting" | "ownership">>(
  change: CacheChange<P>,
): boolean {
  if (change.kind !== "changed") return true;
  const [before, after] = [change.before.value, change.after.value];
  if (change.before.hash !== change.after.hash || before.deleting !== after.deleting) return true;
  return !isDeepStrictEqual(before.ownership, after.ownership);
}

/**
 * Resolves when every required watch is synced: with an empty cache, the controller would write everything again.
 * Rejects with the last error of each watch that is not synced, unless objects still arrive: many take longer.
 */
export async function whenWatching(
  controller: string,
  kinds: readonly DefinedKind[],
  timeoutMs: number,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const required = kinds.filter((kind) => kind.required);
  const read = () => required.reduce((sum, { initial }) => sum + initial, 0);
  for (;;) {
    const before = read();
    try {
      await withTimeout(clock, timeoutMs, signal, async (waiting) => {
        await Promise.all(required.map((kind) => kind.whenSynced(waiting)));
      });
      return;
    } catch (cause) {
      if (!(cause instanceof DeadlineError) || read() === before)
        throw notWatching(controller, required, cause);
    }
  }
}

function notWatching(controller: string, required: readonly DefinedKind[], cause: unknown): Error {
  const closed = required.filter((kind) => !kind.synced).map((kind) => kind.status());
  const reasons = closed.map(({ kind, lastError }) => `${kind}: ${lastError || "no response yet"}`);
  return new Error(`controller ${controller} cannot watch ${reasons.join("; ")}`, { cause });
}
