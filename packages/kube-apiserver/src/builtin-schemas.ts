// The schemas of built-in kinds, extracted from a real API server by tools/extract-openapi.ts.
import { compileDefinitions } from "./compile-schema.ts";
import type { ServedResource } from "./resource.ts";
import apiextensions from "./schema/apiextensions.json" with { type: "json" };
import apps from "./schema/apps.json" with { type: "json" };
import authentication from "./schema/authentication.json" with { type: "json" };
import authorization from "./schema/authorization.json" with { type: "json" };
import autoscaling from "./schema/autoscaling.json" with { type: "json" };
import coordination from "./schema/coordination.json" with { type: "json" };
import core from "./schema/core.json" with { type: "json" };
import events from "./schema/events.json" with { type: "json" };
import meta from "./schema/meta.json" with { type: "json" };
import node from "./schema/node.json" with { type: "json" };
import policy from "./schema/policy.json" with { type: "json" };
import type { Schema } from "./schema.ts";

/** As OpenAPI, for the /openapi/v3 endpoint. */
export const openApiDefinitions: Readonly<Record<string, unknown>> = {
  ...apiextensions,
  ...apps,
  ...authentication,
  ...authorization,
  ...autoscaling,
  ...coordination,
  ...core,
  ...events,
  ...meta,
  ...node,
  ...policy,
};

export const builtinSchema = compileDefinitions(openApiDefinitions);

export function schemaOf(resource: ServedResource): Schema {
  return typeof resource.schema === "string" ? builtinSchema(resource.schema) : resource.schema;
}
