// Converts objects to the requested form: whole, metadata only, or rows of a table.
import { blankObject } from "./body.ts";
import type { JsonObject } from "./json.ts";
import { apiVersionOf, type ServedResource } from "./resource.ts";
import { StatusError } from "./status-error.ts";
import type { StoredObject } from "./store.ts";

export type Form = "whole" | "metadata" | "table";

export interface ListMeta {
  readonly resourceVersion: string;
  readonly continue?: string;
  readonly remainingItemCount?: number;
}

/** The first media type that the server can produce. */
export function parseForm(accept: string | undefined): Form {
  const wanted = (accept ?? "").split(",").map((part) => part.trim());
  for (const part of wanted) {
    const [type = "", ...parameters] = part.split(";").map((piece) => piece.trim());
    if (!["", "*/*", "application/*", "application/json"].includes(type)) continue;
    const as = parameters.find((parameter) => parameter.startsWith("as="))?.slice(3);
    if (as === undefined) return "whole";
    if (as === "PartialObjectMetadata" || as === "PartialObjectMetadataList") return "metadata";
    if (as === "Table") return "table";
  }
  throw new StatusError(
    406,
    "NotAcceptable",
    "406: Not Acceptable\n\nAvailable representations: application/json, application/json;stream=watch",
    {},
  );
}

export class Representation {
  private readonly resource: ServedResource;
  private readonly form: Form;
  private readonly nowMs: number;

  constructor(resource: ServedResource, form: Form, nowMs: number) {
    this.resource = resource;
    this.form = form;
    this.nowMs = nowMs;
  }

  object(object: StoredObject): JsonObject {
    if (this.form === "metadata") return partial(object);
    if (this.form === "table") {
      const meta = { resourceVersion: object.metadata["resourceVersion"] ?? "" };
      return tableOf(this.resource, meta, [this.row(object)], true);
    }
    return this.versioned(object);
  }

  list(objects: readonly StoredObject[], meta: ListMeta): JsonObject {
    const metadata: JsonObject = { ...meta };
    if (this.form === "table") {
      return tableOf(
        this.resource,
        metadata,
        objects.map((object) => this.row(object)),
        true,
      );
    }
    if (this.form === "metadata") {
      return {
        kind: "PartialObjectMetadataList",
        apiVersion: "meta.k8s.io/v1",
        metadata,
        items: objects.map(partial),
      };
    }
    const { kind } = this.resource;
    // Lists of custom resources have an empty continue token on the last page.
    if (this.resource.custom) metadata["continue"] ??= "";
    const items = objects.map((object) => (this.resource.custom ? this.versioned(object) : untyped(object)));
    return { kind: `${kind.kind}List`, apiVersion: apiVersionOf(kind), metadata, items };
  }

  /** Only the first event of a table watch has the columns. */
  event(type: string, object: StoredObject, isFirst: boolean): JsonObject {
    if (this.form !== "table") return { type, object: this.object(object) };
    const meta = { resourceVersion: object.metadata["resourceVersion"] ?? "" };
    return { type, object: tableOf(this.resource, meta, [this.row(object)], isFirst) };
  }

  bookmark(revision: number, initialEventsEnd: boolean): JsonObject {
    const metadata: JsonObject = { resourceVersion: String(revision) };
    if (initialEventsEnd) metadata["annotations"] = { "k8s.io/initial-events-end": "true" };
    const object = { ...blankObject(this.resource), metadata } as StoredObject;
    if (this.form === "metadata") return { type: "BOOKMARK", object: partial(object) };
    if (this.form === "table") {
      return {
        type: "BOOKMARK",
        object: tableOf(this.resource, { resourceVersion: String(revision) }, [], false),
      };
    }
    return { type: "BOOKMARK", object };
  }

  private row(object: StoredObject): JsonObject {
    return tableRow(this.resource, object, partial(object), this.nowMs);
  }

  /** Custom resources are stored once and served in each of their versions. */
  private versioned(object: StoredObject): StoredObject {
    const apiVersion = apiVersionOf(this.resource.kind);
    return object.apiVersion === apiVersion ? object : { ...object, apiVersion };
  }
}

function partial(object: StoredObject): JsonObject {
  return { kind: "PartialObjectMetadata", apiVersion: "meta.k8s.io/v1", metadata: object.metadata };
}

/** In lists of built-in kinds, items have no apiVersion and kind. */
function untyped(object: StoredObject): JsonObject {
  const { kind: _kind, apiVersion: _apiVersion, ...rest } = object;
  return rest;
}

/** The table that kubectl get requests. */
function tableOf(
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

function tableRow(
  resource: ServedResource,
  object: StoredObject,
  shown: JsonObject,
  nowMs: number,
): JsonObject {
  return { cells: resource.columns.map((column) => column.cell(object, nowMs)), object: shown };
}
