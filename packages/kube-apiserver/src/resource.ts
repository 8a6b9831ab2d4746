// Defines a served kind: its path, its schema, and its hooks for defaults, admission and validation. The request
// pipeline is the same for all kinds; everything that differs is in a ServedResource.
//
// How to add a kind
//   1. Write kinds/<plural>.ts that exports `defineResource<T>({...})`, where T is its type
//      in `kubernetes-types`, and add it to the list in served-kinds.ts.
//   2. `schema` names the kind's definition in schema/*.json ("io.k8s.api.core.v1.Pod").
//      It gives field types, list types, merge keys and unknown-field checks; run
//      tools/extract-openapi.ts with the definition added if it is not there yet.
//   3. Leave out every hook that the kind does not need. Hooks run in this order:
//        create: defaults -> admit -> prepareCreate -> validate -> stored
//        update: defaults -> admit -> prepareUpdate -> validate + validateUpdate -> stored
//      They get their own draft, checked against the schema, and change it in place
//      (`delete` a field, never set it to undefined). To reject, `admit` throws an error of
//      status-error.ts; the validate hooks return causes (see causes.ts).
//   4. metadata, generation, status on the wrong endpoint, finalizers, managedFields and
//      the general parts of validation are handled by the pipeline, not by the kind.
//   5. Hooks change nothing but the draft: time, random values and other objects come
//      through the RequestContext, so that a run can be repeated.

import type { Json, JsonObject } from "./json.ts";
import type { Schema } from "./schema.ts";
import type { KubeObject, KubeStatusCause, ResourceKind } from "./types.ts";

/** An object that a hook may change in place. */
export type Draft<T> = T extends readonly (infer Item)[]
  ? Draft<Item>[]
  : T extends object
    ? { -readonly [Key in keyof T]: Draft<T[Key]> }
    : T;

/** What a hook may use besides its object. */
export interface RequestContext {
  readonly user: User;
  /** RFC 3339 with seconds, as the server writes timestamps. */
  readonly timestamp: string;
  /** Uniform in [0, 1), from the run's seed. */
  readonly random: () => number;
  /** A stored object; the namespace is "" for cluster-wide kinds. Never change it. */
  readonly read: (
    resource: Pick<ResourceKind, "group" | "plural">,
    namespace: string,
    name: string,
  ) => KubeObject | undefined;
  /** All stored objects of a kind, in one namespace or in all (""), sorted by name. */
  readonly readAll: (
    resource: Pick<ResourceKind, "group" | "plural">,
    namespace: string,
  ) => readonly KubeObject[];
}

export interface User {
  readonly username: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

/** One column of `kubectl get`; priority 0 is always shown, higher ones with `-o wide`. */
export interface Column<T extends KubeObject = KubeObject> {
  readonly name: string;
  readonly type: "string" | "integer" | "number" | "boolean" | "date";
  readonly format?: "name" | "date-time" | "int32" | "int64";
  readonly description?: string;
  readonly priority?: number;
  /** `nowMs` is wall time, for ages. */
  cell(object: T, nowMs: number): Json;
}

export interface ScaleFields {
  /** Dotted paths: ".spec.replicas", ".status.replicas", ".status.labelSelector" (CRDs only). */
  readonly specReplicasPath: string;
  readonly statusReplicasPath: string;
  readonly labelSelectorPath?: string;
}

export interface ServedResource<T extends KubeObject = KubeObject> {
  readonly kind: ResourceKind<T>;
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  /** A definition's name, or the schema itself (custom resources). */
  readonly schema: string | Schema;

  /** A custom resource's schema as in its definition, for /openapi/v3. */
  readonly openApi?: JsonObject;

  /** Has a /status endpoint: the main endpoint ignores `status`, and /status ignores everything else. */
  readonly statusSubresource: boolean;
  readonly scale?: ScaleFields;
  /** Further subresources: "binding", "eviction", "token", "finalize". */
  readonly subresources?: readonly string[];
  /** Creating one stores nothing (reviews); see reviews.ts. */
  readonly virtual?: boolean;
  /** Paths whose change increments metadata.generation; absent if the kind has no generation. */
  readonly generationPaths?: readonly (readonly string[])[];
  /** Field selectors besides metadata.name and metadata.namespace. */
  readonly selectableFields?: Readonly<Record<string, (object: T) => string>>;
  /** Built-in kinds accept strategic merge patches; custom ones reject them with 415. */
  readonly custom?: boolean;
  /** The /status endpoint cannot change metadata (custom resources). */
  readonly statusKeepsMetadata?: boolean;
  /** The /status endpoint cannot change labels (deployments). */
  readonly statusKeepsLabels?: boolean;
  /** False if an update must have the resourceVersion that it replaces. */
  readonly unconditionalUpdate?: boolean;
  /** True if an update of a missing object creates it (leases, services, events). */
  readonly createOnUpdate?: boolean;
  /** True if an immediate deletion returns the object instead of a Status (pods, services, ...). */
  readonly deleteReturnsObject?: boolean;
  /** How names are checked. Default: DNS subdomain. */
  readonly nameRule?: "subdomain" | "label" | "path-segment";
  readonly columns: readonly Column<T>[];

  /** Sets the defaults of the kind; must be idempotent. */
  defaults?(draft: Draft<T>): void;
  /** Does what admission plug-ins do; may throw a StatusError. */
  admit?(draft: Draft<T>, previous: T | undefined, context: RequestContext): void;
  prepareCreate?(draft: Draft<T>, context: RequestContext): void;
  prepareUpdate?(draft: Draft<T>, previous: T, context: RequestContext): void;
  /** On create and on update. */
  validate?(object: T): readonly KubeStatusCause[];
  validateUpdate?(object: T, previous: T): readonly KubeStatusCause[];
  /** On an update of the status; rarely needed. */
  validateStatusUpdate?(object: T, previous: T): readonly KubeStatusCause[];

  /**
   * The grace period before an object is removed; 0 removes it immediately. Absent: the kind has no graceful deletion.
   */
  graceSeconds?(object: T, requested: number | undefined): number;
  /**
   * Further changes when deletion begins: a namespace's phase, a definition's finalizer. Kinds with this hook keep their
   * generation and get no deletionGracePeriodSeconds.
   */
  markDeleting?(draft: Draft<T>): void;
  /** True while something other than metadata.finalizers blocks the deletion (spec.finalizers). */
  isHeld?(object: T): boolean;
}

/** Types the object for the hooks; the pipeline itself is untyped. */
export function defineResource<T extends KubeObject>(resource: ServedResource<T>): ServedResource {
  return resource as unknown as ServedResource;
}

/** `apps/v1`, or `v1` for the core group. */
export function apiVersionOf({ group, version }: Pick<ResourceKind, "group" | "version">): string {
  return group === "" ? version : `${group}/${version}`;
}
