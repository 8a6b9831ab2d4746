// Selects the objects of a list or a watch.
import type { Scope } from "./core.ts";
import { isObject, stringAt } from "./json.ts";
import type { ListQuery } from "./query.ts";
import type { ServedResource } from "./resource.ts";
import { type FieldRequirement, parseFieldSelector, parseLabelSelector } from "./selectors.ts";
import { badRequest } from "./status-error.ts";
import type { StoredObject } from "./store.ts";

export type Selection = (object: StoredObject) => boolean;

export function parseSelection(scope: Scope, query: ListQuery): Selection {
  const matchesLabels = parseLabelSelector(query.labelSelector);
  const fields = parseFieldSelector(query.fieldSelector).map((requirement) =>
    fieldMatcher(scope.resource, requirement),
  );
  return (object) => {
    const { labels } = object.metadata;
    return matchesLabels(isObject(labels) ? labels : {}) && fields.every((matches) => matches(object));
  };
}

function fieldMatcher(resource: ServedResource, { field, value, equal }: FieldRequirement): Selection {
  const read = fieldReader(resource, field);
  return (object) => (read(object) === value) === equal;
}

function fieldReader(resource: ServedResource, field: string): (object: StoredObject) => string {
  if (field === "metadata.name") return (object) => stringAt(object, "metadata", "name") ?? "";
  if (field === "metadata.namespace" && resource.kind.namespaced) {
    return (object) => stringAt(object, "metadata", "namespace") ?? "";
  }
  const own = resource.selectableFields;
  const read = own !== undefined && Object.hasOwn(own, field) ? own[field] : undefined;
  if (read !== undefined) return read;
  throw badRequest(
    own !== undefined || resource.custom
      ? `field label not supported: ${field}`
      : `${JSON.stringify(field)} is not a known field selector: only "metadata.name"${resource.kind.namespaced ? ', "metadata.namespace"' : ""}`,
  );
}
