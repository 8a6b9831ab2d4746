// What the suite asks of a client. Any client with these calls can run the contract: the small one beside this file
// does for the embedded server, krane's own for the real one.
import type { ApiRequest } from "../../src/request.ts";
import type { KubeStatusCause, ObjectRef } from "../../src/types.ts";
import type { Kind, Manifest } from "./manifest.ts";

export interface ContractApi {
  /** Undefined where there is no object of that name. */
  get(kind: Kind, ref: ObjectRef, options: GetOptions, signal: AbortSignal): Promise<Manifest | undefined>;
  list(kind: Kind, options: ListOptions, signal: AbortSignal): Promise<ListPage>;
  watch(kind: Kind, options: WatchOptions, signal: AbortSignal): AsyncIterable<WatchEvent>;
  /** Server-side apply. */
  apply(kind: Kind, manifest: Manifest, options: ApplyOptions, signal: AbortSignal): Promise<ApplyResult>;
  delete(kind: Kind, ref: ObjectRef, options: DeleteOptions, signal: AbortSignal): Promise<DeleteOutcome>;
  create(kind: Kind, object: Manifest, options: CreateOptions, signal: AbortSignal): Promise<Manifest>;
}

/** One request as it is, for what ContractApi does not say: updates, other patches, odd paths. */
export interface ContractTransport {
  send(request: ApiRequest, signal: AbortSignal): Promise<Answer>;
  /** The lines of a watch as JSON values; `refusal` where the server did not open it. */
  stream(
    request: ApiRequest,
    signal: AbortSignal,
  ): Promise<{ readonly refusal?: Answer; readonly values: AsyncIterable<unknown> }>;
}

export interface Answer {
  readonly status: number;
  /** Parsed JSON, or text. */
  readonly body: unknown;
  readonly retryAfterSeconds?: number;
}

/** What every call of ContractApi throws for an answer that is no success. */
export interface Refusal extends Error {
  readonly status: number | undefined;
  readonly reason: string | undefined;
  readonly causes: readonly KubeStatusCause[];
  readonly retryAfterMs: number | undefined;
}

/** "metadata" asks for a PartialObjectMetadata. */
export type Detail = "whole" | "metadata";

export interface GetOptions {
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

export interface ListPage {
  readonly items: readonly Manifest[];
  readonly resourceVersion: string;
  /** Present while there are more pages. */
  readonly continue?: string;
  readonly remainingItemCount?: number;
}

export interface WatchOptions extends Selection {
  readonly resourceVersion?: string;
  readonly timeoutSeconds?: number;
  readonly bookmarks?: boolean;
  readonly sendInitialEvents?: boolean;
  /** Called when the server has taken the watch. */
  readonly onOpen?: () => void;
}

export type WatchEvent =
  | { readonly type: "ADDED" | "MODIFIED" | "DELETED"; readonly object: Manifest }
  | { readonly type: "BOOKMARK"; readonly resourceVersion: string; readonly initialEventsEnd: boolean };

export interface WriteOptions {
  readonly subresource?: string;
  readonly dryRun?: boolean;
  readonly fieldValidation?: "Ignore" | "Warn" | "Strict";
}

export interface ApplyOptions extends WriteOptions {
  readonly fieldManager: string;
  readonly force: boolean;
  readonly detail?: Detail;
}

export interface ApplyResult {
  readonly kind: "created" | "applied";
  readonly object: Manifest;
}

export interface CreateOptions extends WriteOptions {
  readonly fieldManager?: string;
  /** The object that a subresource belongs to; otherwise taken from the object's own metadata. */
  readonly ref?: ObjectRef;
}

export interface DeleteOptions {
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
