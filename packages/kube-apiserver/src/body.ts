// Decodes a request's body into an object of the kind in the path.

import { schemaOf } from "./builtin-schemas.ts";
import type { Scope } from "./core.ts";
import { decodeCustom } from "./custom-resources/decode-custom.ts";
import { type Decoded, DecodeError, decodeTyped } from "./decode.ts";
import { isObject, type JsonObject, stringAt } from "./json.ts";
import type { WriteQuery } from "./query.ts";
import { apiVersionOf, type ServedResource } from "./resource.ts";
import { badRequest, StatusError } from "./status-error.ts";
import type { StoredObject } from "./store.ts";

/** Decodes and defaults the object. The fields that the server sets are still missing. */
export function decodeBody(scope: Scope, body: unknown, write: WriteQuery): StoredObject {
  const { resource } = scope;
  const sent = objectOf(resource, body);
  checkKind(scope, sent);
  const subject = `${resource.kind.kind} in version "${resource.kind.version}" cannot be handled as a ${resource.kind.kind}`;
  const decoded = decodeOr(resource, sent, "drop", (message) => badRequest(`${subject}: ${message}`));
  const unknown = decoded.unknownFields.map((field) => `unknown field "${field}"`);
  if (unknown.length > 0 && write.fieldValidation === "Strict") {
    throw badRequest(`${subject}: strict decoding error: ${unknown.join(", ")}`);
  }
  if (write.fieldValidation === "Warn") scope.warnings.push(...unknown);
  return withDefaults(resource, decoded.object);
}

/** For objects that the server assembled itself (patched, merged). */
export function decodeMerged(
  scope: Scope,
  merged: JsonObject,
  nulls: "drop" | "keep",
): Decoded & { readonly object: StoredObject } {
  const decoded = decodeOr(scope.resource, merged, nulls, (message) => new StatusError(500, "", message));
  return { unknownFields: decoded.unknownFields, object: withDefaults(scope.resource, decoded.object) };
}

function decodeOr(
  resource: ServedResource,
  sent: JsonObject,
  nulls: "drop" | "keep",
  refusal: (message: string) => StatusError,
): Decoded {
  try {
    if (!resource.custom) return decodeTyped(schemaOf(resource), sent);
    return decodeCustom(schemaOf(resource), sent, nulls);
  } catch (error) {
    if (error instanceof DecodeError) throw refusal(error.message);
    throw error;
  }
}

function withDefaults(resource: ServedResource, object: JsonObject): StoredObject {
  const { apiVersion: _version, kind: _kind, metadata, ...rest } = object;
  const complete: StoredObject = {
    kind: resource.kind.kind,
    apiVersion: apiVersionOf(resource.kind),
    metadata: isObject(metadata) ? metadata : {},
    ...rest,
  };
  resource.defaults?.(complete);
  return complete;
}

/** An object with no fields set, to compare a new object with. */
export function blankObject(resource: ServedResource): JsonObject {
  const typeMeta = { kind: resource.kind.kind, apiVersion: apiVersionOf(resource.kind) };
  if (resource.custom) return typeMeta;
  return { ...decodeTyped(schemaOf(resource), {}).object, ...typeMeta };
}

function objectOf(resource: ServedResource, body: unknown): JsonObject {
  if (isObject(body)) return body;
  throw badRequest(
    `the object provided is unrecognized (must be of type ${resource.kind.kind}): couldn't get version/kind; json parse error: json: cannot unmarshal ${Array.isArray(body) ? "array" : typeof body} into Go value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }`,
  );
}

function checkKind(scope: Scope, sent: JsonObject): void {
  const { kind } = scope.resource;
  const expected = apiVersionOf(kind);
  const apiVersion = stringAt(sent, "apiVersion") || expected;
  const sentKind = stringAt(sent, "kind") || kind.kind;
  if (apiVersion === expected && sentKind === kind.kind) return;
  const version = apiVersion.replace(/^.*\//, "");
  const internal = kind.group === "" ? "core" : kind.group.replace(/\..*$/, "");
  const why = scope.core.registry.hasKind(apiVersion, sentKind)
    ? `converting (${version}.${sentKind}) to (${internal}.${kind.kind}): unknown conversion`
    : `no kind "${sentKind}" is registered for version "${apiVersion}" in scheme "pkg/runtime/scheme.go:111"`;
  throw badRequest(`${sentKind} in version "${version}" cannot be handled as a ${kind.kind}: ${why}`);
}
