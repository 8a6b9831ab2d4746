// The identity of a write for managedFields, and the fields that its endpoint does not change.

import type { WriteIdentity } from "./apply/field-manager.ts";
import { FieldSet } from "./apply/field-set.ts";
import { blankObject } from "./body.ts";
import { schemaOf } from "./builtin-schemas.ts";
import { type Scope, timestampOf } from "./core.ts";
import type { WriteQuery } from "./query.ts";
import { apiVersionOf, type ServedResource } from "./resource.ts";

const nothing = FieldSet.empty;
const status = FieldSet.of(["status"]);
const spec = FieldSet.of(["spec"], ["metadata", "deletionTimestamp"], ["metadata", "ownerReferences"]);
const specAndLabels = FieldSet.of(
  ["spec"],
  ["metadata", "deletionTimestamp"],
  ["metadata", "ownerReferences"],
  ["metadata", "labels"],
);
const specAndMetadata = FieldSet.of(["spec"], ["metadata"]);

export function identityOf(scope: Scope, write: WriteQuery): WriteIdentity {
  const { resource, subresource } = scope;
  return {
    schema: schemaOf(resource),
    apiVersion: apiVersionOf(resource.kind),
    manager: write.fieldManager,
    subresource,
    ignored: ignoredFields(resource, subresource),
    blank: blankObject(resource),
    timestamp: timestampOf(scope.core),
  };
}

function ignoredFields(resource: ServedResource, subresource: string): FieldSet {
  if (subresource === "status") {
    if (resource.statusKeepsMetadata) return specAndMetadata;
    return resource.statusKeepsLabels ? specAndLabels : spec;
  }
  return resource.statusSubresource ? status : nothing;
}
