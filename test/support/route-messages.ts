// A route that is right in every field, for tests that make one thing about it special.
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  type ApplyRoute,
  ApplyRouteSchema,
  ApplyRoute_Expose as Expose,
} from "../../src/gen/ctrl/v1/route_pb.ts";
import { parseApplyRoute, type RouteSpec } from "../../src/kinds/route/spec.ts";
import { describeProblems } from "../../src/model/field-problem.ts";

type Overrides = Exclude<MessageInitShape<typeof ApplyRouteSchema>, ApplyRoute>;

/** Leads to one deployment, which its environment may reach. */
export function applyRoute(overrides: Overrides = {}): ApplyRoute {
  return create(ApplyRouteSchema, {
    k8sNamespace: "acme",
    k8sName: "web",
    routeId: "rt_1",
    workspaceId: "ws_1a2B3c4D",
    projectId: "proj_1a2B3c4D",
    environmentId: "env_1a2B3c4D",
    deploymentId: "d_1a2B3c4D",
    backends: [{ deploymentId: "d_1a2B3c4D", port: 8080 }],
    expose: Expose.ENVIRONMENT,
    ...overrides,
  });
}

export function routeSpec(overrides: Overrides = {}): RouteSpec {
  const parsed = parseApplyRoute(applyRoute(overrides), {});
  if (parsed.kind === "invalid") throw new Error(describeProblems(parsed.problems));
  return parsed.spec;
}
