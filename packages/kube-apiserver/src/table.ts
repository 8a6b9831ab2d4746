// Tables, which kubectl get asks for: the server decides on columns and cells.
import type { JsonObject } from "./json.ts";
import type { ServedResource } from "./resource.ts";
import type { StoredObject } from "./store.ts";

export function tableOf(
  resource: ServedResource,
  metadata: JsonObject,
  rows: JsonObject[],
  withColumns: boolean,
): JsonObject {
  const columns = resource.columns.map((column) => ({
    name: column.name,
    type: column.type,
    format: column.format ?? "",
    description: column.description ?? "",
    priority: column.priority ?? 0,
  }));
  return {
    kind: "Table",
    apiVersion: "meta.k8s.io/v1",
    metadata,
    columnDefinitions: withColumns ? columns : null,
    rows,
  };
}

export function tableRow(
  resource: ServedResource,
  object: StoredObject,
  shown: JsonObject,
  nowMs: number,
): JsonObject {
  return { cells: resource.columns.map((column) => column.cell(object, nowMs)), object: shown };
}
