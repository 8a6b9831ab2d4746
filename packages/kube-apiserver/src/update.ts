// Replaces an object with its next state, from PUT or a patch.
import { recordUpdate } from "./apply/field-manager.ts";
import { decodeBody } from "./body.ts";
import { contextOf, keyOf, type Scope } from "./core.ts";
import { matchName, matchNamespace, storeNew } from "./create.ts";
import { equalJson, isObject, type JsonObject, listAt, stringAt, valueAt } from "./json.ts";
import { validateMeta, validateMetaUpdate } from "./object-meta.ts";
import { parseWriteQuery, type WriteQuery } from "./query.ts";
import { conflict, invalid, notFound } from "./status-error.ts";
import type { StoredObject } from "./store.ts";
import { identityOf } from "./write-identity.ts";

const modifiedMessage =
  "the object has been modified; please apply your changes to the latest version and try again";

export interface Updated {
  readonly object: StoredObject;
  readonly created: boolean;
}

export function updateFromBody(scope: Scope, body: unknown): Updated {
  const write = parseWriteQuery(scope.request, "UpdateOptions");
  const next = decodeBody(scope, body, write);
  matchName(scope, next);
  matchNamespace(scope, next.metadata);
  const { kind, createOnUpdate } = scope.resource;
  const found = scope.core.store.get(keyOf(scope));
  if (found === undefined && createOnUpdate && scope.subresource === "") {
    const recorded = recordUpdate(identityOf(scope, write), undefined, next);
    return { object: storeNew(scope, recorded as StoredObject, write), created: true };
  }
  const live = liveObject(scope);
  const uid = stringAt(next, "metadata", "uid");
  const liveUid = stringAt(live, "metadata", "uid");
  if (uid !== undefined && uid !== liveUid) {
    const place = [kind.group, kind.plural, scope.namespace, scope.name]
      .filter((part) => part !== "")
      .join("/");
    const why = `StorageError: invalid object, Code: 4, Key: /registry/${place}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: ${uid}, UID in object meta: ${liveUid}`;
    throw conflict(kind, scope.name, why);
  }
  const recorded = recordUpdate(identityOf(scope, write), live, next);
  return { object: storeNext(scope, live, recorded as StoredObject, write), created: false };
}

export function liveObject(scope: Scope): StoredObject {
  const live = scope.core.store.get(keyOf(scope));
  if (live === undefined) throw notFound(scope.resource.kind, scope.name);
  return live;
}

/** The last part of an update, after managedFields are recorded; shared by PUT and all patches. */
export function storeNext(
  scope: Scope,
  live: StoredObject,
  recorded: StoredObject,
  write: WriteQuery,
): StoredObject {
  const { core, resource, subresource } = scope;
  const draft = recorded;
  checkResourceVersion(scope, live, draft);
  keepSystemFields(scope, live, draft);
  const context = contextOf(scope);
  if (subresource === "") {
    resource.admit?.(draft, live, context);
    if (resource.statusSubresource) copyField(draft, live, "status");
    resource.prepareUpdate?.(draft, live, context);
    if (generationMoves(scope, live, draft)) {
      draft.metadata["generation"] = Number(live.metadata["generation"] ?? 0) + 1;
    }
  } else {
    keepOutsideOf(scope, live, draft);
  }
  const causes = updateCauses(scope, live, draft);
  if (causes.length > 0) throw invalid(resource.kind, scope.name, causes);
  const next = withoutIdleTimes(live, draft);
  if (isReleased(scope, next)) {
    if (!write.dryRun) core.store.remove(keyOf(scope));
    return next;
  }
  if (write.dryRun || equalJson(next, live)) return write.dryRun ? next : live;
  return core.store.put(keyOf(scope), next);
}

function checkResourceVersion(scope: Scope, live: StoredObject, draft: StoredObject): void {
  const sent = stringAt(draft, "metadata", "resourceVersion") ?? "";
  const { kind, unconditionalUpdate } = scope.resource;
  if (sent === "" || sent === "0") {
    if (unconditionalUpdate === false) {
      throw invalid({ group: kind.group, kind: kind.plural }, scope.name, [
        {
          reason: "FieldValueInvalid",
          message: "Invalid value: 0: must be specified for an update",
          field: "metadata.resourceVersion",
        },
      ]);
    }
  } else if (sent !== stringAt(live, "metadata", "resourceVersion")) {
    throw conflict(kind, scope.name, modifiedMessage);
  }
}

// Fields that the server maintains: changing them has no effect, or is rejected by the checks that follow.
function keepSystemFields({ namespace }: Scope, live: StoredObject, draft: StoredObject): void {
  const { metadata } = draft;
  const kept = live.metadata;
  draft.metadata = {
    ...metadata,
    ...(namespace === "" ? {} : { namespace }),
    resourceVersion: kept["resourceVersion"] ?? "",
    uid: metadata["uid"] ?? kept["uid"] ?? "",
    creationTimestamp: kept["creationTimestamp"] ?? "",
  };
  copyField(draft.metadata, kept, "generation");
  copyField(draft.metadata, kept, "deletionTimestamp");
  copyField(draft.metadata, kept, "deletionGracePeriodSeconds");
}

/** /status changes only the status, and /finalize only the finalizers in spec. */
function keepOutsideOf({ resource, subresource }: Scope, live: StoredObject, draft: StoredObject): void {
  const metadata = { ...(resource.statusKeepsMetadata ? live.metadata : draft.metadata) };
  copyField(metadata, live.metadata, "ownerReferences");
  if (resource.statusKeepsLabels) copyField(metadata, live.metadata, "labels");
  copyField(metadata, draft.metadata, "managedFields");
  const sent = { ...draft };
  for (const key of Object.keys(draft)) delete draft[key];
  Object.assign(draft, live, { metadata });
  copyField(draft, sent, subresource === "finalize" ? "spec" : "status");
}

function copyField(target: JsonObject, source: JsonObject, field: string): void {
  const value = source[field];
  if (value === undefined) delete target[field];
  else target[field] = value;
}

function generationMoves({ resource }: Scope, live: StoredObject, draft: StoredObject): boolean {
  return (resource.generationPaths ?? []).some(
    (path) => !equalJson(valueAt(draft, ...path), valueAt(live, ...path)),
  );
}

function updateCauses({ resource, subresource }: Scope, live: StoredObject, draft: StoredObject) {
  const meta = validateMetaUpdate(draft.metadata, live.metadata);
  const general = [...validateMeta(resource, draft.metadata), ...meta];
  // The real server's kinds validate metadata a second time, so each of its causes appears twice.
  if (subresource !== "") {
    return [...general, ...meta, ...(resource.validateStatusUpdate?.(draft, live) ?? [])];
  }
  return [
    ...general,
    ...meta,
    ...(resource.validateUpdate?.(draft, live) ?? []),
    ...(resource.validate?.(draft) ?? []),
  ];
}

// An operation that changes only the time of its own managedFields entry is not a change.
function withoutIdleTimes(live: StoredObject, draft: StoredObject): StoredObject {
  const before = listAt(live, "metadata", "managedFields");
  const after = listAt(draft, "metadata", "managedFields");
  if (!equalJson(before.map(timeless), after.map(timeless))) return draft;
  const metadata = { ...draft.metadata };
  copyField(metadata, live.metadata, "managedFields");
  const same = { ...draft, metadata };
  return equalJson(same, live) ? same : draft;
}

function timeless(entry: unknown): unknown {
  return isObject(entry) ? { ...entry, time: "" } : entry;
}

/** Whether nothing blocks the deletion of the object any more. */
function isReleased({ resource }: Scope, next: StoredObject): boolean {
  const { deletionTimestamp, deletionGracePeriodSeconds } = next.metadata;
  if (deletionTimestamp === undefined || listAt(next, "metadata", "finalizers").length > 0) return false;
  if (resource.isHeld?.(next)) return false;
  return deletionGracePeriodSeconds === undefined || deletionGracePeriodSeconds === 0;
}
