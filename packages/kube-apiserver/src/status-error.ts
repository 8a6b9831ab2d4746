// Errors with the statuses and messages of the real API server. All errors of the request pipeline are thrown as
// StatusErrors and become the body of the response.

import type { JsonObject } from "./json.ts";
import type { KubeStatus, KubeStatusCause, KubeStatusDetails, ResourceKind } from "./types.ts";

export class StatusError extends Error {
  override readonly name = "StatusError";
  readonly status: KubeStatus & { readonly code: number };
  /** For expired pages: a token to continue with, if an inconsistent list is acceptable. */
  readonly continueToken: string | undefined;

  constructor(
    code: number,
    reason: string,
    message: string,
    details?: KubeStatusDetails,
    continueToken?: string,
  ) {
    super(message);
    this.continueToken = continueToken;
    this.status = {
      kind: "Status",
      apiVersion: "v1",
      status: "Failure",
      message,
      ...(reason === "" ? {} : { reason }),
      ...(details === undefined ? {} : { details }),
      code,
    };
  }
}

type Resource = Pick<ResourceKind, "group" | "plural">;

/** `pods`, `replicasets.apps`: the name of a resource in messages. */
function qualified({ group, plural }: Resource): string {
  return group === "" ? plural : `${plural}.${group}`;
}

function detailsOf({ group, plural }: Resource, name: string): KubeStatusDetails {
  return { ...(name === "" ? {} : { name }), ...(group === "" ? {} : { group }), kind: plural };
}

export function notFound(resource: Resource, name: string): StatusError {
  return new StatusError(
    404,
    "NotFound",
    `${qualified(resource)} "${name}" not found`,
    detailsOf(resource, name),
  );
}

export function alreadyExists(resource: Resource, name: string): StatusError {
  return new StatusError(
    409,
    "AlreadyExists",
    `${qualified(resource)} "${name}" already exists`,
    detailsOf(resource, name),
  );
}

export function conflict(resource: Resource, name: string, why: string): StatusError {
  return new StatusError(
    409,
    "Conflict",
    `Operation cannot be fulfilled on ${qualified(resource)} "${name}": ${why}`,
    detailsOf(resource, name),
  );
}

export function forbidden(
  resource: Resource,
  name: string,
  why: string,
  causes?: readonly KubeStatusCause[],
): StatusError {
  const subject = name === "" ? qualified(resource) : `${qualified(resource)} "${name}"`;
  return new StatusError(403, "Forbidden", `${subject} is forbidden: ${why}`, {
    ...detailsOf(resource, name),
    ...(causes === undefined ? {} : { causes }),
  });
}

export function badRequest(message: string): StatusError {
  return new StatusError(400, "BadRequest", message);
}

/** A 422 with one cause per field. Each message is `field: message`; several are in brackets. */
export function invalid(
  kind: Pick<ResourceKind, "group" | "kind">,
  name: string,
  causes: readonly KubeStatusCause[],
): StatusError {
  const lines = [...new Set(causes.map((cause) => `${cause.field}: ${cause.message}`))];
  const summary = lines.length === 1 ? lines[0] : `[${lines.join(", ")}]`;
  const subject = kind.group === "" ? kind.kind : `${kind.kind}.${kind.group}`;
  return new StatusError(422, "Invalid", `${subject} "${name}" is invalid: ${summary}`, {
    ...(name === "" ? {} : { name }),
    ...(kind.group === "" ? {} : { group: kind.group }),
    kind: kind.kind,
    causes,
  });
}

/** For a path that is not served, or a verb that it does not support. */
export function methodNotAllowed(): StatusError {
  return new StatusError(
    405,
    "MethodNotAllowed",
    "the server does not allow this method on the requested resource",
    {},
  );
}

export function expired(message: string, continueToken?: string): StatusError {
  return new StatusError(410, "Expired", message, undefined, continueToken);
}

/** The Status object of an error, as a response body. */
export function statusBody({ status, continueToken }: StatusError): JsonObject {
  const { kind, apiVersion, ...rest } = status;
  const metadata: JsonObject = continueToken === undefined ? {} : { continue: continueToken };
  return { kind, apiVersion, metadata, ...(rest as unknown as JsonObject) };
}

/** The body for subresources that return nothing else. */
export function createdBody(): JsonObject {
  return { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", code: 201 };
}

/** The body for objects that were deleted immediately. */
export function deletedBody(
  kind: Pick<ResourceKind, "group" | "plural">,
  name: string,
  uid: string,
): JsonObject {
  const details: KubeStatusDetails = {
    name,
    ...(kind.group === "" ? {} : { group: kind.group }),
    kind: kind.plural,
    uid,
  };
  return {
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Success",
    details: details as unknown as JsonObject,
  };
}
