// Handles PATCH in its four formats. Apply may create an object; the others need an existing one.

import { recordApply, recordUpdate } from "./apply/field-manager.ts";
import { printPath } from "./apply/path-element.ts";
import { checkTyped } from "./apply/typed-check.ts";
import type { FieldConflict } from "./apply/updater.ts";
import { decodeMerged } from "./body.ts";
import { schemaOf } from "./builtin-schemas.ts";
import { keyOf, type Scope } from "./core.ts";
import { matchName, matchNamespace, storeNew } from "./create.ts";
import { isObject, type Json, type JsonObject, stringAt, valueAt } from "./json.ts";
import { applyJsonPatch, JsonPatchError } from "./patches/json-patch.ts";
import { applyMergePatch } from "./patches/merge-patch.ts";
import { applyStrategicPatch } from "./patches/strategic-merge-patch.ts";
import { parseWriteQuery, type WriteQuery } from "./query.ts";
import { apiVersionOf } from "./resource.ts";
import { badRequest, conflict, invalid, notFound, StatusError } from "./status-error.ts";
import type { StoredObject } from "./store.ts";
import { liveObject, storeNext } from "./update.ts";
import { identityOf } from "./write-identity.ts";

export interface Patched {
  readonly object: StoredObject;
  readonly created: boolean;
}

export function patchObject(scope: Scope, body: unknown): Patched {
  const contentType = (scope.request.contentType ?? "").replace(/;.*$/, "").trim();
  const known = [
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/apply-patch+yaml",
  ];
  if (!scope.resource.custom) known.push("application/strategic-merge-patch+json");
  if (!known.includes(contentType)) {
    if (!scope.resource.custom)
      throw new StatusError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {});
    const formats = `the body of the request was in an unknown format - accepted media types include: ${known.join(", ")}`;
    throw new StatusError(415, "UnsupportedMediaType", formats);
  }
  const write = parseWriteQuery(scope.request, "PatchOptions");
  if (contentType === "application/apply-patch+yaml") return applyObject(scope, body, write);
  return { object: patchLive(scope, body, contentType, write), created: false };
}

function patchLive(scope: Scope, body: unknown, contentType: string, write: WriteQuery): StoredObject {
  const live = liveObject(scope);
  const patched = patchedObject(scope, live, body, contentType);
  const { object, unknownFields } = decodePatched(scope, patched);
  const unknown = unknownFields.map((field) => `unknown field "${field}"`);
  if (unknown.length > 0 && write.fieldValidation === "Strict") {
    throw invalidPatch(patched, `strict decoding error: ${unknown.join(", ")}`);
  }
  if (write.fieldValidation === "Warn") scope.warnings.push(...unknown);
  matchNamespace(scope, object.metadata);
  matchName(scope, object);
  const recorded = recordUpdate(identityOf(scope, write), live, object);
  return storeNext(scope, live, recorded as StoredObject, write);
}

function patchedObject(scope: Scope, live: StoredObject, body: unknown, contentType: string): JsonObject {
  const patch = body as Json;
  let patched: Json | undefined;
  if (contentType === "application/json-patch+json") {
    if (!Array.isArray(patch))
      throw badRequest(
        "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
      );
    patched = patchByOperations(live, patch);
  } else {
    if (!isObject(patch))
      throw badRequest(
        "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}",
      );
    const isStrategic = contentType === "application/strategic-merge-patch+json";
    patched = isStrategic
      ? applyStrategicPatch(schemaOf(scope.resource), live, patch)
      : applyMergePatch(live, patch);
  }
  return isObject(patched) ? patched : {};
}

function patchByOperations(live: StoredObject, patch: readonly Json[]): Json {
  try {
    return applyJsonPatch(live, patch);
  } catch (error) {
    if (!(error instanceof JsonPatchError)) throw error;
    throw new StatusError(
      422,
      "Invalid",
      "the server rejected our request due to an error in our request",
      {},
    );
  }
}

function decodePatched(scope: Scope, patched: JsonObject) {
  try {
    return decodeMerged(scope, patched, "drop");
  } catch (error) {
    if (error instanceof StatusError && error.status.code === 500) throw invalidPatch(patched, error.message);
    throw error;
  }
}

function invalidPatch(patched: JsonObject, why: string): StatusError {
  const text = JSON.stringify(JSON.stringify(patched));
  const cause = { reason: "FieldValueInvalid", message: `Invalid value: ${text}: ${why}`, field: "patch" };
  return invalid({ group: "", kind: "" }, "", [cause]);
}

function applyObject(scope: Scope, body: unknown, write: WriteQuery): Patched {
  const config = checkConfiguration(scope, body);
  const live = scope.core.store.get(keyOf(scope));
  if (live === undefined && scope.subresource !== "") throw notFound(scope.resource.kind, scope.name);
  const outcome = recordApply(identityOf(scope, write), live, config, write.force);
  if (outcome.kind === "conflict") throw applyConflict(outcome.conflicts);
  const { object } = decodeMerged(scope, outcome.object, "keep");
  const uid = stringAt(object, "metadata", "uid");
  if (live === undefined && uid !== undefined) {
    const why = `uid mismatch: the provided object specified uid ${uid}, and no existing object was found`;
    throw conflict(scope.resource.kind, scope.name, why);
  }
  matchNamespace(scope, object.metadata);
  matchName(scope, object);
  if (live === undefined) return { object: storeNew(scope, object, write), created: true };
  return { object: storeNext(scope, live, object, write), created: false };
}

function checkConfiguration(scope: Scope, body: unknown): JsonObject {
  const { resource } = scope;
  if (!isObject(body))
    throw badRequest(
      "error decoding YAML: json: cannot unmarshal array into Go value of type map[string]interface {}",
    );
  const apiVersion = stringAt(body, "apiVersion") ?? "";
  const kind = stringAt(body, "kind") ?? "";
  const groupVersionKind = `${apiVersion.includes("/") ? "" : "/"}${apiVersion}, Kind=${kind}`;
  if (apiVersion !== apiVersionOf(resource.kind) || kind !== resource.kind.kind) {
    throw badRequest(`invalid object type: ${groupVersionKind}`);
  }
  if (
    valueAt(body, "metadata", "managedFields") !== undefined &&
    valueAt(body, "metadata", "managedFields") !== null
  ) {
    throw badRequest("metadata.managedFields must be nil");
  }
  const misfits = checkTyped(schemaOf(resource), body);
  if (misfits.length === 0) return body;
  const place = `${stringAt(body, "metadata", "namespace") ?? ""}/${stringAt(body, "metadata", "name") ?? ""}`;
  const list =
    misfits.length === 1 ? misfits[0] : `errors:\n${misfits.map((misfit) => `  ${misfit}`).join("\n")}`;
  throw new StatusError(
    500,
    "",
    `failed to create typed patch object (${place}; ${groupVersionKind}): ${list}`,
  );
}

/** The error of an apply that would change fields of other owners, with the real server's message. */
function applyConflict(conflicts: readonly FieldConflict[]): StatusError {
  const causes = conflicts.map(({ owner, path }) => ({
    reason: "FieldManagerConflict",
    message: `conflict with ${printOwner(owner)}`,
    field: printPath(path),
  }));
  return new StatusError(409, "Conflict", conflictMessage(conflicts), { causes });
}

function conflictMessage(conflicts: readonly FieldConflict[]): string {
  const [first] = conflicts;
  if (conflicts.length === 1 && first !== undefined) {
    return `Apply failed with 1 conflict: conflict with ${printOwner(first.owner)}: ${printPath(first.path)}`;
  }
  const byOwner = new Map<string, string[]>();
  for (const { owner, path } of conflicts) {
    const shown = printOwner(owner);
    byOwner.set(shown, [...(byOwner.get(shown) ?? []), `- ${printPath(path)}`]);
  }
  const lines = [...byOwner].flatMap(([owner, paths]) => [`conflicts with ${owner}:`, ...paths]);
  return `Apply failed with ${conflicts.length} conflicts: ${lines.join("\n")}`;
}

function printOwner(owner: FieldConflict["owner"]): string {
  const place = owner.subresource === "" ? "" : ` with subresource ${JSON.stringify(owner.subresource)}`;
  const version = owner.operation === "Update" ? ` using ${owner.apiVersion}` : "";
  return `${JSON.stringify(owner.manager)}${place}${version}`;
}
