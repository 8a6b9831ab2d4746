// The interfaces of a running controller: start and stop, status, and orders that do not come from the stream.
import type { DescMessage } from "@bufbuild/protobuf";
import type { BlockedDeletion, ControllerStatus, ObjectStatus, Stranger } from "../gen/krane/v1/agent_pb.ts";
import type { ControllerDefinition, WatchedObject } from "./controller-definition.ts";
import type { ObjectFilter } from "./controller-status.ts";
import type { DesiredStore } from "./desired-store.ts";
import type { ApplyOf, DeleteOf } from "./engine-kind.ts";
import type { OutcomeRecord } from "./object-status.ts";

export interface OrderOutcome extends Pick<OutcomeRecord, "outcome" | "reason" | "fieldPath"> {
  /** The order is invalid, and changed nothing. */
  readonly isInvalid?: true;
  /** The order could not be recorded, and is not in force here. The same call may succeed later. */
  readonly isUnrecorded?: true;
  /** But Kubernetes may have the record. An agent that starts before it is removed brings the order into force. */
  readonly mayBeRecorded?: true;
}

/** A controller for the code that starts, stops and inspects it. */
export interface RunningController {
  /**
   * Resolves when the watches are open; rejects, with nothing left running, if they cannot be opened. A missing CRD
   * does not make it fail: the status shows it until the cluster has the kind.
   */
  start(signal?: AbortSignal): Promise<void>;
  /** May be called at any time and any number of times; when it resolves, nothing runs. */
  stop(): Promise<void>;
  status(): ControllerStatus;
  objects(filter?: ObjectFilter): ObjectStatus[];
  blockedDeletions(): BlockedDeletion[];
  /** Returns false if no such deletion is held back. */
  releaseDeletion(key: string): boolean;
  /** The objects with the seal of another krane, and the permission to adopt them. */
  readonly seals: SealedObjects;
}

/** An object to adopt, as Stranger names it. */
export type AdoptedObject = Pick<Stranger, "kind" | "namespace" | "name" | "uid">;

export type AdoptionOutcome =
  | { readonly kind: "allowed" }
  /** It was allowed before. */
  | { readonly kind: "pending" }
  /** There is no such stranger; it may have been adopted already. */
  | { readonly kind: "not-found" }
  | { readonly kind: "refused"; readonly reason: string };

/** Objects that carry a seal which is not this krane's. */
export interface SealedObjects {
  /** Sorted by kind, namespace and name. */
  strangers(): Stranger[];
  /** Allows to take over those that desired state names. The outcomes are in the order of the objects. */
  adopt(objects: readonly AdoptedObject[]): readonly AdoptionOutcome[];
}

/** A controller for code that also gives orders and observes objects. */
export interface KindController<State extends DescMessage = DescMessage, Seen = unknown, Spec = unknown>
  extends RunningController {
  /** `readinessId`: a token of the caller, stored on the object. */
  apply(message: ApplyOf<State>, signal: AbortSignal, readinessId?: string): Promise<OrderOutcome>;
  delete(message: DeleteOf<State>, signal: AbortSignal): Promise<OrderOutcome>;
  /** The current desired state, by key. */
  readonly desired: Pick<DesiredStore<Spec>, "get">;
  /** The observed objects, and their changes. */
  readonly seen: SeenObjects<Seen>;
  /** Why pods cannot run, by key. The same map until something changes. */
  failures(): ReadonlyMap<string, string>;
  /** See `ControllerDefinition.liveObject`. */
  liveObject(key: string): WatchedObject | undefined;
  /** Whether any pod may be the original's, whether or not desired state names its owner. */
  mayHaveOriginalPods(): boolean;
}

/** What a controller observes in the cluster. It is read from the caches and costs the API server nothing. */
export interface SeenObjects<T> {
  keys(): Iterable<string>;
  /** Undefined if krane has no such object. */
  get(key: string): T | undefined;
  /** The listener gets only the key, and reads the state itself. Returns the function that unsubscribes. */
  subscribe(listener: KeyListener): () => void;
  /** Aborts when the controller stops observing. */
  readonly ending: AbortSignal;
}

export type KeyListener = (key: string) => void;

export function createSeenObjects<Seen>(
  definition: Pick<ControllerDefinition<unknown, Seen>, "managed" | "seen">,
  listeners: Set<KeyListener>,
  ending: AbortSignal,
): SeenObjects<Seen> {
  return {
    *keys() {
      for (const { key } of definition.managed()) yield key;
    },
    get: (key) => definition.seen?.(key),
    subscribe(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    ending,
  };
}
