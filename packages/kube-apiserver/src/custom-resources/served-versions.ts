// Builds the served resources of a CustomResourceDefinition: one per served version.
import type {
  CustomResourceColumnDefinition,
  CustomResourceDefinition,
  CustomResourceDefinitionVersion,
} from "kubernetes-types/apiextensions/v1.js";
import { builtinSchema } from "../builtin-schemas.ts";
import { compileStructural } from "../compile-schema.ts";
import { isObject, type Json, type JsonObject } from "../json.ts";
import type { Column, ServedResource } from "../resource.ts";
import type { Property, Schema } from "../schema.ts";
import { ageColumn, ageSince, nameColumn } from "../table-columns.ts";
import { readJsonPath } from "./json-path.ts";
import { validateCustom } from "./validate-custom.ts";

export function servedVersions(definition: CustomResourceDefinition): ServedResource[] {
  return definition.spec.versions
    .filter((version) => version.served)
    .map((version) => servedVersion(definition, version));
}

function servedVersion(
  definition: CustomResourceDefinition,
  version: CustomResourceDefinitionVersion,
): ServedResource {
  const { spec } = definition;
  const source = (version.schema?.openAPIV3Schema ?? {}) as unknown as JsonObject;
  const own = compileStructural(source);
  const hasStatus = version.subresources?.status !== undefined;
  const scale = version.subresources?.scale;
  return {
    kind: {
      group: spec.group,
      version: version.name,
      kind: spec.names.kind,
      plural: spec.names.plural,
      namespaced: spec.scope === "Namespaced",
    },
    singular: spec.names.singular ?? spec.names.kind.toLowerCase(),
    shortNames: spec.names.shortNames ?? [],
    categories: spec.names.categories ?? [],
    schema: withTypeFields(own),
    openApi: source,
    statusSubresource: hasStatus,
    statusKeepsMetadata: true,
    ...(scale === undefined ? {} : { scale }),
    generationPaths: generationPaths(own, hasStatus),
    unconditionalUpdate: false,
    custom: true,
    columns: [nameColumn, ...(version.additionalPrinterColumns?.map(customColumn) ?? [ageColumn])],
    validate: (object) => {
      const {
        apiVersion: _version,
        kind: _kind,
        metadata: _metadata,
        ...fields
      } = object as unknown as JsonObject;
      return validateCustom(own, fields);
    },
  };
}

/** All fields except metadata, and except status if it has its own endpoint. */
function generationPaths(own: Schema, hasStatus: boolean): string[][] {
  const names = new Set([...(own.properties?.keys() ?? []), "spec", "status"]);
  for (const name of ["apiVersion", "kind", "metadata"]) names.delete(name);
  if (hasStatus) names.delete("status");
  return [...names].map((name) => [name]);
}

function withTypeFields(own: Schema): Schema {
  const text: Property = { schema: { type: "string" } };
  const metadata: Property = { schema: builtinSchema("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta") };
  const properties = new Map<string, Property>([
    ...(own.properties ?? []),
    ["apiVersion", text],
    ["kind", text],
    ["metadata", metadata],
  ]);
  return { ...own, type: "object", properties };
}

function customColumn(column: CustomResourceColumnDefinition): Column {
  const isDate = column.type === "date";
  return {
    name: column.name,
    type: column.type as Column["type"],
    ...(column.format === undefined ? {} : { format: column.format as NonNullable<Column["format"]> }),
    description:
      column.description ?? `Custom resource definition column (in JSONPath format): ${column.jsonPath}`,
    priority: column.priority ?? 0,
    cell: (object, nowMs) => {
      const found = readJsonPath(object, column.jsonPath);
      if (isDate) return typeof found === "string" ? ageSince(found, nowMs) : null;
      return cellOf(found, column.type);
    },
  };
}

function cellOf(value: Json | undefined, type: string): Json {
  if (value === undefined || value === null) return null;
  if (type === "string") return typeof value === "string" ? value : JSON.stringify(value);
  return isObject(value) || Array.isArray(value) ? JSON.stringify(value) : value;
}
