// The route of an app: its name in the cluster, which leads to one of its releases.
import { create } from "@bufbuild/protobuf";
import type { ApplyDeployment } from "../gen/ctrl/v1/deployment_pb.ts";
import { type ApplyRoute, ApplyRouteSchema, ApplyRoute_Expose as Expose } from "../gen/ctrl/v1/route_pb.ts";
import type { AppSpec } from "../gen/krane/admin/v1/app_pb.ts";
import { routeIdOf } from "./deployment/release-names.ts";
import { defaultPort } from "./deployment/spec.ts";

/** A release that gets a part of the requests by hostname. */
export interface NextPart {
  readonly deploymentId: string;
  readonly percent: number;
}

/** Undefined for an app without one. `deploymentId`: where it leads; `running`: what traffic may move to. */
export function appRoute(
  { expose, hostnames, template }: AppSpec,
  deploymentId: string,
  running: readonly ApplyDeployment[],
  next?: NextPart,
): ApplyRoute | undefined {
  if (expose === Expose.UNSPECIFIED || template === undefined) return undefined;
  const { k8sNamespace, k8sName, workspaceId, projectId, environmentId } = template;
  return create(ApplyRouteSchema, {
    ...{ k8sNamespace, k8sName, workspaceId, projectId, environmentId, expose, deploymentId, hostnames },
    routeId: routeIdOf(template),
    backends: running.map((each) => ({
      deploymentId: each.deploymentId,
      port: each.port || defaultPort,
      percent: hostnames.length > 0 && each.deploymentId === next?.deploymentId ? next.percent : 0,
    })),
  });
}
