// Maintains metadata.managedFields on every write: turns requests into operations of updater.ts, and sets the times and
// limits of the result.

import { type JsonObject, listAt, valueAt } from "../json.ts";
import type { Schema } from "../schema.ts";
import type { ManagedFieldsEntry } from "../types.ts";
import { FieldSet } from "./field-set.ts";
import {
  compareText,
  decodeOwners,
  type Owners,
  type Ownership,
  ownerId,
  withOwners,
  withoutOwners,
} from "./managed-fields.ts";
import { ListItemError } from "./typed-value.ts";
import { applyConfiguration, type FieldConflict, type Operation, updateOwners } from "./updater.ts";

export interface WriteIdentity {
  readonly schema: Schema;
  readonly apiVersion: string;
  readonly manager: string;
  /** "" for the object's own endpoint. */
  readonly subresource: string;
  readonly ignored: FieldSet;
  /** An object with no fields set, to compare a new object with. */
  readonly blank: JsonObject;
  readonly timestamp: string;
}

// Fields that the server maintains have no owner.
const serverFields = FieldSet.of(
  ["apiVersion"],
  ["kind"],
  ["metadata"],
  ["metadata", "name"],
  ["metadata", "namespace"],
  ["metadata", "creationTimestamp"],
  ["metadata", "selfLink"],
  ["metadata", "uid"],
  ["metadata", "clusterName"],
  ["metadata", "generation"],
  ["metadata", "managedFields"],
  ["metadata", "resourceVersion"],
);

const currentOperation = "current-operation";

/** Returns the next object with its owners, after a create, an update or a patch other than apply. */
export function recordUpdate(
  write: WriteIdentity,
  live: JsonObject | undefined,
  next: JsonObject,
): JsonObject {
  const owners = ownersForUpdate(write, live, next);
  // An object whose ownership was reset stays without owners until the next apply.
  if (owners.size === 0 && live !== undefined) return withoutOwners(next);
  try {
    return withOwners(next, capUpdaters(ownersAfterUpdate(write, owners, live, next, write.manager)));
  } catch (error) {
    // A list item without its keys cannot be owned. Validation reports it later; until then the object has no owners, as
    // on the real server.
    if (error instanceof ListItemError) return withoutOwners(next);
    throw error;
  }
}

export type RecordedApply =
  | { readonly kind: "applied"; readonly object: JsonObject }
  | { readonly kind: "conflict"; readonly conflicts: readonly FieldConflict[] };

/** Returns the merged object with its owners, before defaulting. */
export function recordApply(
  write: WriteIdentity,
  live: JsonObject | undefined,
  config: JsonObject,
  force: boolean,
): RecordedApply {
  const decoded = decodeOwners(managedFieldsOf(live)) ?? new Map();
  const owners =
    decoded.size === 0 && live !== undefined
      ? ownersAfterUpdate(write, decoded, undefined, live, "before-first-apply")
      : decoded;
  const as = { ...identityOf(write), operation: "Apply" as const };
  const id = ownerId(as);
  const { schema, ignored } = write;
  const operation: Operation = { schema, owners, id, as, ignored };
  const outcome = applyConfiguration(
    operation,
    live === undefined ? write.blank : withoutOwners(live),
    config,
    force,
  );
  if (outcome.kind === "conflict") return outcome;
  const changed = stripServerFields(outcome.owners, id);
  const own = changed.get(id);
  // An apply that only shares fields, without changing the object, keeps the old time.
  const time = outcome.changed ? write.timestamp : owners.get(id)?.time;
  if (own !== undefined) changed.set(id, { ...own, time });
  return { kind: "applied", object: withOwners(outcome.object as JsonObject, changed) };
}

function ownersAfterUpdate(
  write: WriteIdentity,
  owners: Owners,
  live: JsonObject | undefined,
  next: JsonObject,
  manager: string,
): Owners {
  const { schema, ignored, timestamp } = write;
  const as = { ...identityOf(write), manager, operation: "Update" as const };
  const operation: Operation = { schema, owners, id: currentOperation, as, ignored };
  const before = live === undefined ? write.blank : withoutOwners(live);
  const updated = stripServerFields(updateOwners(operation, before, withoutOwners(next)), currentOperation);
  const taken = updated.get(currentOperation);
  updated.delete(currentOperation);
  if (taken === undefined) return updated;
  const id = ownerId(as);
  const previous = updated.get(id)?.fields ?? FieldSet.empty;
  updated.set(id, { ...taken, time: timestamp, fields: taken.fields.union(previous) });
  return updated;
}

// A client may leave managedFields out without losing them. An empty list resets them. Subresources cannot change them.
function ownersForUpdate(write: WriteIdentity, live: JsonObject | undefined, next: JsonObject): Owners {
  const kept = decodeOwners(managedFieldsOf(live)) ?? new Map();
  if (write.subresource !== "") return kept;
  const sent = valueAt(next, "metadata", "managedFields");
  if (Array.isArray(sent)) {
    const [only] = sent;
    const isReset = sent.length === 0 || (sent.length === 1 && Object.keys(only ?? {}).length === 0);
    if (isReset) return new Map();
  }
  const decoded = decodeOwners(managedFieldsOf(next));
  return decoded === undefined || decoded.size === 0 ? kept : decoded;
}

function stripServerFields(owners: Owners, id: string): Map<string, Ownership> {
  const changed = new Map(owners);
  const own = changed.get(id);
  if (own === undefined) return changed;
  const fields = own.fields.difference(serverFields);
  if (fields.isEmpty) changed.delete(id);
  else changed.set(id, { ...own, fields });
  return changed;
}

function identityOf({ manager, apiVersion, subresource }: WriteIdentity) {
  return { manager: manager === "" ? "unknown" : manager, apiVersion, subresource };
}

function managedFieldsOf(object: JsonObject | undefined): readonly ManagedFieldsEntry[] {
  return listAt(object, "metadata", "managedFields") as readonly ManagedFieldsEntry[];
}

const updatersMax = 10;

/** Merges the oldest updaters beyond the limit into one entry per API version, so that managedFields stay bounded. */
function capUpdaters(owners: Owners): Owners {
  const updaters = [...owners]
    .filter(([, owner]) => owner.operation === "Update")
    .sort(
      ([leftId, left], [rightId, right]) =>
        compareText(left.time ?? "", right.time ?? "") || compareText(leftId, rightId),
    );
  if (updaters.length <= updatersMax) return owners;
  const capped = new Map(owners);
  const firstOfVersion = new Map<string, string>();
  let count = updaters.length;
  for (const [id, owner] of updaters) {
    if (count <= updatersMax) break;
    const first = firstOfVersion.get(owner.apiVersion);
    if (first === undefined) {
      firstOfVersion.set(owner.apiVersion, id);
      continue;
    }
    mergeIntoBucket(capped, first, id, owner);
    count--;
  }
  return capped;
}

function mergeIntoBucket(
  owners: Map<string, Ownership>,
  firstId: string,
  id: string,
  owner: Ownership,
): void {
  const as = {
    manager: "ancient-changes",
    operation: "Update",
    apiVersion: owner.apiVersion,
    subresource: "",
  } as const;
  const bucketId = ownerId(as);
  const bucket = owners.get(bucketId) ?? owners.get(firstId);
  owners.delete(firstId);
  owners.delete(id);
  const fields = bucket === undefined ? owner.fields : owner.fields.union(bucket.fields);
  owners.set(bucketId, { ...as, time: owner.time, fields });
}
