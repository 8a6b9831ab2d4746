// One kind of object that the server serves: where it lives, what its fields mean, and
// what happens to an object on its way in. The request pipeline knows no kind by name;
// everything that differs between kinds is in a ServedResource.
//
// How to add a kind
//   1. Write kinds/<plural>.ts that exports `defineResource<T>({...})`, T being its type
//      in `kubernetes-types`, and add it to the list in served-kinds.ts.
//   2. `schema` names the kind's definition in schema/*.json ("io.k8s.api.core.v1.Pod").
//      It gives field types, list types, merge keys and unknown-field checks; run
//      tools/extract-openapi.ts with the definition added if it is not there yet.
//   3. Leave out every hook that the kind does not need. Hooks run in this order:
//        create: defaults -> admit -> prepareCreate -> validate -> stored
//        update: defaults -> admit -> prepareUpdate -> validate + validateUpdate -> stored
//      They get a draft of their own, checked against the schema, and change it in place
//      (`delete` a field, never set it to undefined). To refuse, `admit` throws one of
//      status-error.ts; the validate hooks return causes (see causes.ts).
//   4. metadata, generation, status on the wrong endpoint, finalizers, managedFields and
//      the general parts of validation are the pipeline's business, not the kind's.
//   5. Hooks are pure but for the draft: time, random values and other objects come
//      through the RequestContext, so that a run can be replayed.

import type { Json, JsonObject } from "./json.ts";
import type { Schema } from "./schema.ts";
import type { KubeObject, KubeStatusCause, ResourceKind } from "./types.ts";

/** An object that a hook may change in place. */
export type Draft<T> = T extends readonly (infer Item)[]
  ? Draft<Item>[]
  : T extends object
    ? { -readonly [Key in keyof T]: Draft<T[Key]> }
    : T;

/** What a hook may know besides its object. */
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
  /** All stored objects of a kind, of one namespace unless it is "", by name. */
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

  /** A custom resource's schema as its definition has it, for /openapi/v3. */
  readonly openApi?: JsonObject;

  /** Has a /status endpoint: the main one leaves `status` alone, that one leaves the rest alone. */
  readonly statusSubresource: boolean;
  readonly scale?: ScaleFields;
  /** Further names under an object that the pipeline serves: "binding", "eviction", "token", "finalize". */
  readonly subresources?: readonly string[];
  /** Creating one answers a question and stores nothing (reviews); see reviews.ts. */
  readonly virtual?: boolean;
  /** Paths whose change adds one to metadata.generation; absent where the kind keeps none. */
  readonly generationPaths?: readonly (readonly string[])[];
  /** Field selectors besides metadata.name and metadata.namespace. */
  readonly selectableFields?: Readonly<Record<string, (object: T) => string>>;
  /** Built-in kinds take strategic merge patches; custom ones refuse them with 415. */
  readonly custom?: boolean;
  /** Custom resources keep metadata out of reach of their /status endpoint. */
  readonly statusKeepsMetadata?: boolean;
  /** Deployments keep only their labels out of its reach. */
  readonly statusKeepsLabels?: boolean;
  /** False where an update must name the resourceVersion that it replaces. */
  readonly unconditionalUpdate?: boolean;
  /** True where an update of an object that is not there creates it (leases, services, events). */
  readonly createOnUpdate?: boolean;
  /** True where deleting at once answers the object instead of a Status (pods, services, ...). */
  readonly deleteAnswersObject?: boolean;
  /** How names are checked; DNS subdomain unless told. */
  readonly nameRule?: "subdomain" | "label" | "path-segment";
  readonly columns: readonly Column<T>[];

  /** Fills in what the kind's API defaults; must be idempotent. */
  defaults?(draft: Draft<T>): void;
  /** What admission plug-ins do and refuse; may throw a StatusError. */
  admit?(draft: Draft<T>, previous: T | undefined, context: RequestContext): void;
  prepareCreate?(draft: Draft<T>, context: RequestContext): void;
  prepareUpdate?(draft: Draft<T>, previous: T, context: RequestContext): void;
  /** On create and on update. */
  validate?(object: T): readonly KubeStatusCause[];
  validateUpdate?(object: T, previous: T): readonly KubeStatusCause[];
  /** Main-endpoint answers to writes and the effects of writes elsewhere; rarely needed. */
  validateStatusUpdate?(object: T, previous: T): readonly KubeStatusCause[];

  /**
   * Seconds an object is given to end before it is removed; 0 removes it at once. Absent:
   * the kind has no graceful deletion.
   */
  graceSeconds?(object: T, requested: number | undefined): number;
  /**
   * What else changes when deletion begins: a namespace's phase, a definition's finalizer.
   * Kinds that have this keep their generation and get no deletionGracePeriodSeconds.
   */
  markDeleting?(draft: Draft<T>): void;
  /** True while something other than metadata.finalizers holds the object (spec.finalizers). */
  isHeld?(object: T): boolean;
}

/** Gives hooks their typed object; the pipeline itself treats all kinds alike. */
export function defineResource<T extends KubeObject>(resource: ServedResource<T>): ServedResource {
  return resource as unknown as ServedResource;
}

/** `apps/v1`, or `v1` for the core group. */
export function apiVersionOf({ group, version }: Pick<ResourceKind, "group" | "version">): string {
  return group === "" ? version : `${group}/${version}`;
}
