// The interface between krane and Kubernetes. All code that reads or writes the cluster takes a KubeApi; whether a
// real API server or the embedded one is behind it is decided elsewhere.
import type { KubeObject, ObjectRef, ResourceKind } from "./types.ts";

export interface KubeApi {
  /** Returns undefined if no object has that name. A kind that the server does not know is an error. */
  get<T extends KubeObject>(
    kind: ResourceKind<T>,
    ref: ObjectRef,
    options: GetOptions,
    signal: AbortSignal,
  ): Promise<T | undefined>;
  list<T extends KubeObject>(
    kind: ResourceKind<T>,
    options: ListOptions,
    signal: AbortSignal,
  ): Promise<ListPage<T>>;
  /** Ends when the server ends the watch; throws a KubeApiError for an ERROR event or a broken stream. */
  watch<T extends KubeObject>(
    kind: ResourceKind<T>,
    options: WatchOptions,
    signal: AbortSignal,
  ): AsyncIterable<WatchEvent<T>>;
  /** Server-side apply. The manifest carries name, namespace and, as a precondition, uid or resourceVersion. */
  apply<T extends KubeObject>(
    kind: ResourceKind<T>,
    manifest: T,
    options: ApplyOptions,
    signal: AbortSignal,
  ): Promise<ApplyResult<T>>;
  /** Sends a JSON patch for an object that has not changed since it was read; fails with a conflict if it has. */
  patch<T extends KubeObject>(
    kind: ResourceKind<T>,
    object: T,
    operations: readonly PatchOperation[],
    options: PatchOptions,
    signal: AbortSignal,
  ): Promise<T>;
  delete(
    kind: ResourceKind,
    ref: ObjectRef,
    options: DeleteOptions,
    signal: AbortSignal,
  ): Promise<DeleteOutcome>;
  /** For reviews, tokens and evictions, which are not stored, and for plain creates. */
  create<T extends KubeObject>(
    kind: ResourceKind<T>,
    object: T,
    options: CreateOptions,
    signal: AbortSignal,
  ): Promise<T>;
}

/** "metadata" asks the server to leave out spec and status (PartialObjectMetadata). */
export type Detail = "whole" | "metadata";

export interface GetOptions {
  /** "0" accepts a cached state of the server, at a twentieth of the cost of the newest. */
  readonly resourceVersion?: string;
  readonly detail?: Detail;
}

export interface Selection {
  /** Absent: all namespaces. */
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly detail?: Detail;
}

export interface ListOptions extends Selection {
  readonly limit?: number;
  readonly continue?: string;
  readonly resourceVersion?: string;
  readonly resourceVersionMatch?: "Exact" | "NotOlderThan";
}

export interface ListPage<T extends KubeObject> {
  readonly items: readonly T[];
  readonly resourceVersion: string;
  /** Present while there are more pages. */
  readonly continue?: string;
  readonly remainingItemCount?: number;
}

export interface WatchOptions extends Selection {
  /** Changes after this version. Absent or "0": first the current state as ADDED events. */
  readonly resourceVersion?: string;
  /** The server ends the watch after this long; spread it so that watches do not end together. */
  readonly timeoutSeconds?: number;
  readonly bookmarks?: boolean;
  /** Asks for a consistent initial state in the stream, closed by a bookmark with initialEventsEnd. */
  readonly sendInitialEvents?: boolean;
  /**
   * Called when the server has accepted the watch, which may be long before the first event. Its errors are ignored.
   */
  readonly onOpen?: () => void;
}

export type WatchEvent<T extends KubeObject> =
  | { readonly type: "ADDED" | "MODIFIED" | "DELETED"; readonly object: T }
  | { readonly type: "BOOKMARK"; readonly resourceVersion: string; readonly initialEventsEnd: boolean };

export interface WriteOptions {
  readonly subresource?: string;
  readonly dryRun?: boolean;
  /** How the server treats unknown and duplicate fields; its own default is "Warn". */
  readonly fieldValidation?: "Ignore" | "Warn" | "Strict";
}

export interface ApplyOptions extends WriteOptions {
  readonly fieldManager: string;
  /** Takes over fields that other managers own. */
  readonly force: boolean;
  readonly detail?: Detail;
}

export interface ApplyResult<T extends KubeObject> {
  readonly kind: "created" | "applied";
  readonly object: T;
}

export interface PatchOptions extends WriteOptions {
  readonly fieldManager: string;
}

/** One operation of a JSON patch; paths are JSON pointers. */
export type PatchOperation = ReplaceOperation | RemoveOperation;

export interface ReplaceOperation {
  /** "add" also replaces an existing member. */
  readonly op: "replace" | "add";
  readonly path: string;
  readonly value: unknown;
}

export interface RemoveOperation {
  readonly op: "remove";
  readonly path: string;
}

export interface CreateOptions extends WriteOptions {
  readonly fieldManager?: string;
  /** The object that a subresource (token, eviction, binding) belongs to; otherwise taken from the object's own metadata. */
  readonly ref?: ObjectRef;
}

export interface DeleteOptions {
  /** The delete fails with a conflict if the live object has another uid. */
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly propagation?: "Background" | "Foreground" | "Orphan";
  readonly gracePeriodSeconds?: number;
  readonly dryRun?: boolean;
}

/** "deleting": accepted, but a finalizer or a grace period still holds the object. */
export interface DeleteOutcome {
  readonly kind: "deleted" | "deleting" | "absent";
}
