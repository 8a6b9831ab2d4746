// Encodes and decodes metadata.managedFields: the owners of fields, with operation and time.

import { copyJson, isObject, type Json, type JsonObject } from "../json.ts";
import type { ManagedFieldsEntry } from "../types.ts";
import { decodeFieldSet, encodeFieldSet, type FieldSet } from "./field-set.ts";

export interface Ownership {
  readonly manager: string;
  readonly operation: "Apply" | "Update";
  readonly apiVersion: string;
  readonly subresource: string;
  readonly time: string | undefined;
  readonly fields: FieldSet;
}

/** By the identity of the manager. */
export type Owners = ReadonlyMap<string, Ownership>;

/**
 * The identity of an entry. An applier is the same in every API version; an updater is a different one in each.
 */
export function ownerId(
  owner: Pick<Ownership, "manager" | "operation" | "apiVersion" | "subresource">,
): string {
  const version = owner.operation === "Apply" ? "" : owner.apiVersion;
  return JSON.stringify([owner.manager, owner.operation, version, owner.subresource]);
}

/** Undefined if the entries are invalid; the caller decides whether that is an error. */
export function decodeOwners(entries: readonly ManagedFieldsEntry[] | undefined): Owners | undefined {
  const owners = new Map<string, Ownership>();
  for (const entry of entries ?? []) {
    const { operation, apiVersion, fieldsType } = entry;
    if (operation !== "Apply" && operation !== "Update") return undefined;
    if (!apiVersion || fieldsType !== "FieldsV1") return undefined;
    const owner: Ownership = {
      manager: entry.manager ?? "",
      operation,
      apiVersion,
      subresource: entry.subresource ?? "",
      time: entry.time,
      fields: decodeFieldSet(entry.fieldsV1),
    };
    owners.set(ownerId(owner), owner);
  }
  return owners;
}

/** Sorts appliers first, then by time, then by name, as clients see them. */
function encodeOwners(owners: Owners): JsonObject[] {
  return [...owners.values()].sort(compareOwners).map((owner) => ({
    manager: owner.manager,
    operation: owner.operation,
    apiVersion: owner.apiVersion,
    ...(owner.time === undefined ? {} : { time: owner.time }),
    fieldsType: "FieldsV1",
    fieldsV1: encodeFieldSet(owner.fields),
    ...(owner.subresource === "" ? {} : { subresource: owner.subresource }),
  }));
}

function compareOwners(left: Ownership, right: Ownership): number {
  return (
    compareText(left.operation, right.operation) ||
    compareText(left.time ?? "", right.time ?? "") ||
    compareText(left.manager, right.manager) ||
    compareText(left.apiVersion, right.apiVersion) ||
    compareText(left.subresource, right.subresource)
  );
}

export function compareText(left: string, right: string): number {
  return left < right ? -1 : left > right ? 1 : 0;
}

/** Returns a copy of the object with these owners. */
export function withOwners(object: JsonObject, owners: Owners): JsonObject {
  const copy = withoutOwners(object);
  if (owners.size > 0 && isObject(copy["metadata"])) copy["metadata"]["managedFields"] = encodeOwners(owners);
  return copy;
}

export function withoutOwners(object: JsonObject): JsonObject {
  const metadata: Json | undefined = object["metadata"];
  if (!isObject(metadata)) return copyJson(object);
  const { managedFields: _dropped, ...rest } = metadata;
  return copyJson({ ...object, metadata: rest });
}
