// Deletes objects: immediately, after a grace period, or when the last finalizer is removed.

import { unsupported } from "./causes.ts";
import { keyOf, type Scope } from "./core.ts";
import { copyJson, equalJson, isObject, type JsonObject, listAt, stringAt, valueAt } from "./json.ts";
import { checkNamespaceDeletion } from "./namespace-lifecycle.ts";
import { refuse } from "./query.ts";
import { conflict, notFound } from "./status-error.ts";
import type { StoredObject } from "./store.ts";
import { formatTimestamp, parseTimestamp } from "./timestamps.ts";
import type { KubeStatusCause } from "./types.ts";

export interface DeleteRequest {
  readonly uid: string | undefined;
  readonly resourceVersion: string | undefined;
  readonly propagation: string | undefined;
  readonly graceSeconds: number | undefined;
  readonly dryRun: boolean;
}

export interface Deletion {
  readonly object: StoredObject;
  readonly isGone: boolean;
}

const dependentFinalizers = new Set(["orphan", "foregroundDeletion"]);

/** Reads the options from the body, or from the query if there is no body. */
export function parseDeleteRequest({ request }: Scope): DeleteRequest {
  const query = request.query ?? {};
  const body: JsonObject = isObject(request.body) ? request.body : {};
  const hasBody = Object.keys(body).length > 0;
  const seconds = hasBody ? valueAt(body, "gracePeriodSeconds") : query["gracePeriodSeconds"];
  const propagation = hasBody ? stringAt(body, "propagationPolicy") : query["propagationPolicy"];
  const orphan = valueAt(body, "orphanDependents");
  const dryRun = listAt(body, "dryRun").includes("All") || query["dryRun"] === "All";
  const causes: KubeStatusCause[] = [];
  if (propagation !== undefined && !["Foreground", "Background", "Orphan"].includes(propagation)) {
    causes.push(unsupported("propagationPolicy", propagation, ["Foreground", "Background", "Orphan", "nil"]));
  }
  refuse("DeleteOptions", causes);
  return {
    uid: stringAt(body, "preconditions", "uid"),
    resourceVersion: stringAt(body, "preconditions", "resourceVersion"),
    propagation: propagation ?? (orphan === true ? "Orphan" : undefined),
    graceSeconds: seconds === undefined || seconds === null ? undefined : Number(seconds),
    dryRun,
  };
}

export function deleteObject(scope: Scope, asked: DeleteRequest): Deletion {
  const { core, resource } = scope;
  const live = core.store.get(keyOf(scope));
  if (live === undefined) throw notFound(resource.kind, scope.name);
  checkNamespaceDeletion(scope, scope.name);
  checkPreconditions(scope, live, asked);
  const draft = copyJson(live);
  const grace = gracePeriod(scope, live, asked);
  if (grace === "pending") return { object: live, isGone: false };
  setDependentFinalizers(draft, asked.propagation);
  if (live.metadata["deletionTimestamp"] === undefined) resource.markDeleting?.(draft);
  const isHeld = listAt(draft, "metadata", "finalizers").length > 0 || (resource.isHeld?.(draft) ?? false);
  if (grace !== undefined) {
    markGraceful(scope, draft, grace);
    const marked = store(scope, draft, asked);
    if (grace > 0 || isHeld) return { object: marked, isGone: false };
    return { object: remove(scope, marked, asked), isGone: true };
  }
  if (!isHeld) return { object: remove(scope, live, asked), isGone: true };
  markHeld(scope, draft);
  return { object: store(scope, draft, asked), isGone: false };
}

function checkPreconditions({ resource, name }: Scope, live: StoredObject, asked: DeleteRequest): void {
  const place = { group: resource.kind.group, plural: resource.kind.kind };
  const uid = stringAt(live, "metadata", "uid");
  if (asked.uid !== undefined && asked.uid !== uid) {
    const why = `the UID in the precondition (${asked.uid}) does not match the UID in record (${uid}). The object might have been deleted and then recreated`;
    throw conflict(place, name, why);
  }
  const version = stringAt(live, "metadata", "resourceVersion");
  if (asked.resourceVersion !== undefined && asked.resourceVersion !== version) {
    const why = `the ResourceVersion in the precondition (${asked.resourceVersion}) does not match the ResourceVersion in record (${version}). The object might have been modified`;
    throw conflict(place, name, why);
  }
}

/** Undefined: no graceful deletion. "pending": already in progress, and not shortened. */
function gracePeriod(
  { resource }: Scope,
  live: StoredObject,
  asked: DeleteRequest,
): number | "pending" | undefined {
  if (resource.graceSeconds === undefined) return undefined;
  if (live.metadata["deletionTimestamp"] === undefined) {
    return resource.graceSeconds(
      live,
      asked.graceSeconds === undefined ? undefined : atLeastNow(asked.graceSeconds),
    );
  }
  const running = Number(live.metadata["deletionGracePeriodSeconds"] ?? 0);
  if (running === 0) return undefined;
  if (asked.graceSeconds === undefined || atLeastNow(asked.graceSeconds) >= running) return "pending";
  return atLeastNow(asked.graceSeconds);
}

// A negative period means one second: as soon as the kubelet can, but never without it.
function atLeastNow(seconds: number): number {
  return seconds < 0 ? 1 : seconds;
}

/** Foreground and orphan deletion are finalizers that the garbage collector removes. */
function setDependentFinalizers(draft: StoredObject, propagation: string | undefined): void {
  if (propagation === undefined) return;
  const kept = listAt(draft, "metadata", "finalizers").filter(
    (name) => !dependentFinalizers.has(String(name)),
  );
  if (propagation === "Orphan") kept.push("orphan");
  if (propagation === "Foreground") kept.push("foregroundDeletion");
  if (kept.length > 0) draft.metadata["finalizers"] = kept;
  else delete draft.metadata["finalizers"];
}

function markGraceful({ core }: Scope, draft: StoredObject, graceSeconds: number): void {
  const nowMs = core.clock.wallMs();
  const { metadata } = draft;
  const running = stringAt(draft, "metadata", "deletionTimestamp");
  if (running === undefined) {
    bumpGeneration(metadata);
    metadata["deletionTimestamp"] = formatTimestamp(nowMs + graceSeconds * 1000);
    metadata["deletionGracePeriodSeconds"] = graceSeconds;
    return;
  }
  // A shorter period counts from the start of the deletion, but never ends in the past.
  const begunMs =
    (parseTimestamp(running) ?? nowMs) - Number(metadata["deletionGracePeriodSeconds"] ?? 0) * 1000;
  const endMs = begunMs + graceSeconds * 1000;
  metadata["deletionTimestamp"] = formatTimestamp(Math.max(endMs, nowMs));
  metadata["deletionGracePeriodSeconds"] = endMs < nowMs && graceSeconds !== 0 ? 1 : graceSeconds;
}

function markHeld({ core, resource }: Scope, draft: StoredObject): void {
  const { metadata } = draft;
  const isNew = metadata["deletionTimestamp"] === undefined;
  if (isNew) metadata["deletionTimestamp"] = formatTimestamp(core.clock.wallMs());
  // Kinds that are emptied first (namespaces, definitions) set their own fields.
  if (resource.markDeleting !== undefined) return;
  metadata["deletionGracePeriodSeconds"] = 0;
  if (isNew) bumpGeneration(metadata);
}

function bumpGeneration(metadata: JsonObject): void {
  const generation = metadata["generation"];
  if (typeof generation === "number") metadata["generation"] = generation + 1;
}

function store(scope: Scope, draft: StoredObject, asked: DeleteRequest): StoredObject {
  const live = scope.core.store.get(keyOf(scope));
  if (asked.dryRun || equalJson(live, draft)) return draft;
  return scope.core.store.put(keyOf(scope), draft);
}

function remove(scope: Scope, last: StoredObject, asked: DeleteRequest): StoredObject {
  if (!asked.dryRun) scope.core.store.remove(keyOf(scope));
  return last;
}
