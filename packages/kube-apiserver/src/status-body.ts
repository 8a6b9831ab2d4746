// Status objects as bodies of answers.

import type { JsonObject } from "./json.ts";
import type { StatusError } from "./status-error.ts";
import type { KubeStatusDetails, ResourceKind } from "./types.ts";

export function statusBody({ status, continueToken }: StatusError): JsonObject {
  const { kind, apiVersion, ...rest } = status;
  const metadata: JsonObject = continueToken === undefined ? {} : { continue: continueToken };
  return { kind, apiVersion, metadata, ...(rest as unknown as JsonObject) };
}

/** For subresources that answer nothing else. */
export function createdBody(): JsonObject {
  return { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", code: 201 };
}

/** For objects that are gone at once. */
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
