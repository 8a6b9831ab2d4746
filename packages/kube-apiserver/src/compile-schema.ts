// Compiles OpenAPI, as API servers and CRDs have it, into the server's own Schema.
import { fieldOf, isObject, type Json, type JsonObject, listAt } from "./json.ts";
import { opaque, type Property, type Schema, type SchemaType } from "./schema.ts";

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };
type Definitions = Readonly<Record<string, unknown>>;

const constraintNames = [
  "enum",
  "minimum",
  "maximum",
  "exclusiveMinimum",
  "exclusiveMaximum",
  "multipleOf",
  "minLength",
  "maxLength",
  "pattern",
  "minItems",
  "maxItems",
  "uniqueItems",
  "minProperties",
  "maxProperties",
];

// These types have custom JSON code in Go, which OpenAPI does not show.
const special: ReadonlyMap<string, Schema> = new Map<string, Schema>([
  ["io.k8s.apimachinery.pkg.api.resource.Quantity", { format: "quantity" }],
  ["io.k8s.apimachinery.pkg.util.intstr.IntOrString", { format: "int-or-string" }],
  ["io.k8s.apimachinery.pkg.apis.meta.v1.Time", { type: "string", format: "date-time" }],
  ["io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime", { type: "string", format: "micro-time" }],
  ["io.k8s.apimachinery.pkg.runtime.RawExtension", opaque],
]);

/** Returns a function that finds a definition by name. Each is compiled once; references may be circular. */
export function compileDefinitions(definitions: Definitions): (name: string) => Schema {
  const compiled = new Map<string, Schema>(special);
  const resolve = (name: string): Schema => {
    const known = compiled.get(name);
    if (known !== undefined) return known;
    const source = definitions[name];
    if (!isObject(source)) throw new Error(`no definition of ${name}`);
    const schema: Mutable<Schema> = { goName: name.replace(/^.*\./, "") };
    compiled.set(name, schema);
    return Object.assign(schema, compileNode(source, resolve));
  };
  return resolve;
}

/** Compiles a CRD's openAPIV3Schema, which is structural and so has no references. */
export function compileStructural(source: JsonObject): Schema {
  return compileNode(source, (name) => {
    throw new Error(`a custom resource's schema refers to ${name}`);
  });
}

function compileNode(source: JsonObject, resolve: (name: string) => Schema): Schema {
  const reference = referenceOf(source);
  if (reference !== undefined) return resolve(reference);
  const schema: Mutable<Schema> = {};
  const type = fieldOf(source, "type");
  if (typeof type === "string") schema.type = type as SchemaType;
  const format = source["x-kubernetes-int-or-string"] === true ? "int-or-string" : source["format"];
  if (typeof format === "string") schema.format = format;
  if (source["nullable"] === true) schema.nullable = true;
  if (source["x-kubernetes-preserve-unknown-fields"] === true) schema.preserveUnknown = true;
  if (source["x-kubernetes-embedded-resource"] === true) schema.embeddedResource = true;
  compileChildren(source, schema, resolve);
  compileMergeRules(source, schema);
  const required = listAt(source, "required").filter((name) => typeof name === "string");
  if (required.length > 0) schema.required = required;
  const constraints = Object.entries(source).filter(([key]) => constraintNames.includes(key));
  if (constraints.length > 0) schema.constraints = Object.fromEntries(constraints);
  return schema;
}

function compileChildren(
  source: JsonObject,
  schema: Mutable<Schema>,
  resolve: (name: string) => Schema,
): void {
  const { properties, additionalProperties, items } = source;
  if (isObject(properties)) {
    schema.properties = new Map(
      Object.entries(properties).flatMap(([name, property]) =>
        isObject(property) ? [[name, compileProperty(property, resolve)] as const] : [],
      ),
    );
  }
  if (isObject(additionalProperties))
    schema.additionalProperties = compileNode(additionalProperties, resolve);
  else if (additionalProperties === true) schema.preserveUnknown = true;
  if (isObject(items)) schema.items = compileNode(items, resolve);
}

function compileMergeRules(source: JsonObject, schema: Mutable<Schema>): void {
  const listType = source["x-kubernetes-list-type"];
  const mapType = source["x-kubernetes-map-type"];
  if (listType === "atomic" || listType === "set" || listType === "map") {
    schema.listType = listType;
    const keys = listAt(source, "x-kubernetes-list-map-keys").filter((key) => typeof key === "string");
    if (keys.length > 0) schema.listMapKeys = keys;
  } else if (String(source["x-kubernetes-patch-strategy"] ?? "").startsWith("merge")) {
    const mergeKey = source["x-kubernetes-patch-merge-key"];
    schema.listType = typeof mergeKey === "string" ? "map" : "set";
    if (typeof mergeKey === "string") schema.listMapKeys = [mergeKey];
  }
  if (mapType === "atomic" || mapType === "granular") schema.mapType = mapType;
}

function compileProperty(source: JsonObject, resolve: (name: string) => Schema): Property {
  const property: Mutable<Property> = { schema: compileNode(source, resolve) };
  const fallback = fieldOf(source, "default");
  if (fallback !== undefined) property.default = fallback;
  const presence = source["x-go"];
  if (presence === "omit" || presence === "zero" || presence === "null") property.presence = presence;
  const mergeKey = source["x-kubernetes-patch-merge-key"];
  const strategy: Json | undefined = source["x-kubernetes-patch-strategy"];
  if (typeof mergeKey === "string") property.patchMergeKey = mergeKey;
  if (typeof strategy === "string") property.patchStrategy = strategy.split(",");
  return property;
}

/** `$ref`, or a single `$ref` in `allOf`, which is used to add a default. */
function referenceOf(source: JsonObject): string | undefined {
  const [only] = listAt(source, "allOf");
  const reference = fieldOf(source, "$ref") ?? (isObject(only) ? fieldOf(only, "$ref") : undefined);
  return typeof reference === "string" ? reference.replace(/^.*\//, "") : undefined;
}
