// Creates an object, by POST or by an apply for a new name.
import { recordUpdate } from "./apply/field-manager.ts";
import { decodeBody } from "./body.ts";
import { contextOf, keyOf, type Scope, timestampOf } from "./core.ts";
import { createUid, generateName } from "./identifiers.ts";
import { type JsonObject, stringAt, valueAt } from "./json.ts";
import { checkNamespace } from "./namespace-lifecycle.ts";
import { validateMeta } from "./object-meta.ts";
import { parseWriteQuery, type WriteQuery } from "./query.ts";
import { alreadyExists, badRequest, invalid, StatusError } from "./status-error.ts";
import type { StoredObject } from "./store.ts";
import { identityOf } from "./write-identity.ts";

export function createFromBody(scope: Scope, body: unknown): StoredObject {
  const write = parseWriteQuery(scope.request, "CreateOptions");
  const object = decodeBody(scope, body, write);
  const { metadata } = object;
  matchNamespace(scope, metadata);
  if (!metadata["name"] && typeof metadata["generateName"] === "string" && metadata["generateName"] !== "") {
    metadata["name"] = generateName(metadata["generateName"], scope.core.random);
  }
  wipeSystemFields(metadata);
  if (stringAt(metadata, "resourceVersion")) {
    throw new StatusError(500, "", "resourceVersion should not be set on objects to be created");
  }
  return storeNew(scope, recordUpdate(identityOf(scope, write), undefined, object) as StoredObject, write);
}

/** The last part of a create, after managedFields are recorded; shared with apply. */
export function storeNew(scope: Scope, recorded: StoredObject, write: WriteQuery): StoredObject {
  const { core, resource } = scope;
  const draft = recorded;
  const name = stringAt(draft, "metadata", "name") ?? "";
  draft.metadata = {
    ...draft.metadata,
    ...(scope.namespace === "" ? {} : { namespace: scope.namespace }),
    uid: createUid(core.random),
    creationTimestamp: timestampOf(core),
  };
  checkNamespace(scope, name);
  const context = contextOf(scope);
  resource.admit?.(draft, undefined, context);
  if (resource.generationPaths === undefined) delete draft.metadata["generation"];
  else draft.metadata["generation"] = 1;
  if (resource.statusSubresource && resource.custom) delete draft["status"];
  resource.prepareCreate?.(draft, context);
  const causes = [...(resource.validate?.(draft) ?? []), ...validateMeta(resource, draft.metadata)];
  if (causes.length > 0) throw invalid(resource.kind, name, causes);
  const key = keyOf(scope, name);
  if (core.store.get(key) !== undefined) throw nameTaken(scope, draft, name);
  return write.dryRun ? draft : core.store.put(key, draft);
}

function nameTaken(scope: Scope, draft: StoredObject, name: string): StatusError {
  const taken = alreadyExists(scope.resource.kind, name);
  const holder = scope.core.store.get(keyOf(scope, name));
  if (stringAt(holder, "metadata", "deletionTimestamp") !== undefined) {
    const message = `object is being deleted: ${taken.message}`;
    return new StatusError(409, "AlreadyExists", message, taken.status.details);
  }
  if (!draft.metadata["generateName"]) return taken;
  return new StatusError(
    409,
    "AlreadyExists",
    `${taken.message}, the server was not able to generate a unique name for the object`,
    {
      ...taken.status.details,
      retryAfterSeconds: 1,
    },
  );
}

/** The path has the namespace. An object may repeat it, but not contradict it. */
export function matchNamespace(scope: Scope, metadata: JsonObject): void {
  const sent = stringAt(metadata, "namespace") ?? "";
  if (sent === "" || sent === scope.namespace) return;
  throw badRequest(
    scope.resource.kind.namespaced
      ? "the namespace of the provided object does not match the namespace sent on the request"
      : "namespace provided for an object that is not namespaced",
  );
}

export function matchName(scope: Scope, object: JsonObject): void {
  const sent = valueAt(object, "metadata", "name");
  if (sent === scope.name) return;
  if (sent === undefined || sent === "") {
    throw badRequest(
      `the name of the object (${scope.name} based on URL) was undeterminable: name must be provided`,
    );
  }
  throw badRequest(
    `the name of the object (${String(sent)}) does not match the name on the URL (${scope.name})`,
  );
}

function wipeSystemFields(metadata: JsonObject): void {
  for (const field of [
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
  ]) {
    delete metadata[field];
  }
}
