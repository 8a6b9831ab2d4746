// Serves /openapi/v3: the schemas for kubectl explain, and the operations that tell kubectl that the server supports
// field validation and server-side apply.
import { createHash } from "node:crypto";
import { openApiDefinitions } from "./builtin-schemas.ts";
import { isObject, type Json, type JsonObject } from "./json.ts";
import type { ResourceRegistry } from "./registry.ts";
import type { WholeResponse } from "./request.ts";
import type { ServedResource } from "./resource.ts";

const writeParameters = ["dryRun", "fieldManager", "fieldValidation"];

export function serveOpenApi(registry: ResourceRegistry, path: string): WholeResponse | undefined {
  if (path === "/openapi/v3") return { kind: "whole", status: 200, body: index(registry) };
  const match = /^\/openapi\/v3\/(?:api|apis\/([^/]+))\/([^/]+)$/.exec(path);
  if (match === null) return undefined;
  const [, group = "", version = ""] = match;
  const served = servedIn(registry, group, version);
  return served.length === 0 ? undefined : { kind: "whole", status: 200, body: documentOf(served) };
}

function servedIn(registry: ResourceRegistry, group: string, version: string): ServedResource[] {
  return registry.all().filter(({ kind }) => kind.group === group && kind.version === version);
}

/** The hash lets clients cache a document until it changes. */
function index(registry: ResourceRegistry) {
  const places = new Map(registry.all().map((served) => [rootOf(served), served]));
  const paths = [...places].map(([place, { kind }]) => {
    const text = JSON.stringify(documentOf(servedIn(registry, kind.group, kind.version)));
    const hash = createHash("sha256").update(text).digest("hex").toUpperCase();
    return [place, { serverRelativeURL: `/openapi/v3/${place}?hash=${hash}` }];
  });
  return { paths: Object.fromEntries(paths) };
}

function rootOf({ kind }: ServedResource): string {
  return kind.group === "" ? `api/${kind.version}` : `apis/${kind.group}/${kind.version}`;
}

function documentOf(served: readonly ServedResource[]): JsonObject {
  const schemas: JsonObject = {};
  const paths: JsonObject = {};
  for (const resource of served) {
    const name = addSchema(resource, schemas);
    const { kind } = resource;
    const inside = kind.namespaced ? "/namespaces/{namespace}" : "";
    const collection = `/${rootOf(resource)}${inside}/${kind.plural}`;
    paths[collection] = { post: operation(resource, name, "post", writeParameters) };
    if (resource.virtual) continue;
    paths[`${collection}/{name}`] = {
      get: operation(resource, name, "get", []),
      put: operation(resource, name, "put", writeParameters),
      patch: operation(resource, name, "patch", [...writeParameters, "force"]),
      delete: operation(resource, name, "delete", ["dryRun"]),
    };
  }
  return {
    openapi: "3.0.0",
    info: { title: "Kubernetes", version: "v1.36.0" },
    paths,
    components: { schemas },
  };
}

function operation(
  resource: ServedResource,
  schema: string,
  action: string,
  parameters: readonly string[],
): JsonObject {
  const { group, version, kind } = resource.kind;
  const reference = { schema: { $ref: `#/components/schemas/${schema}` } };
  return {
    operationId: `${action}${kind}`,
    parameters: parameters.map((name) => ({
      name,
      in: "query",
      schema: { type: name === "force" ? "boolean" : "string" },
    })),
    responses: { "200": { description: "OK", content: { "application/json": reference } } },
    "x-kubernetes-action": action,
    "x-kubernetes-group-version-kind": { group, version, kind },
  };
}

/** Adds the kind's definition and all that it refers to. Returns its name. */
function addSchema(resource: ServedResource, schemas: JsonObject): string {
  const { group, version, kind } = resource.kind;
  if (typeof resource.schema === "string") {
    const waiting = [resource.schema];
    for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
      const definition = openApiDefinitions[name];
      if (Object.hasOwn(schemas, name) || !isObject(definition)) continue;
      schemas[name] = definition;
      waiting.push(...referencesIn(definition));
    }
    return resource.schema;
  }
  const name = `${group.split(".").reverse().join(".")}.${version}.${kind}`;
  schemas[name] = { ...resource.openApi, "x-kubernetes-group-version-kind": [{ group, version, kind }] };
  return name;
}

function referencesIn(node: Json): string[] {
  if (Array.isArray(node)) return node.flatMap(referencesIn);
  if (!isObject(node)) return [];
  return Object.entries(node).flatMap(([key, value]) =>
    key === "$ref" && typeof value === "string" ? [value.replace(/^.*\//, "")] : referencesIn(value),
  );
}
