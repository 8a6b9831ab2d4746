// The descriptor of routes. A route is a stable name for one of several deployments: a Service that leads to one of
// them, a CiliumNetworkPolicy that says who may reach them, and an HTTPRoute with its hostnames. An app with `expose` has one.
import { ClusterService } from "../../gen/ctrl/v1/cluster_service_pb.ts";
import {
  ApplyRouteSchema,
  type ReportRouteStatusRequestSchema,
  RouteStateSchema,
} from "../../gen/ctrl/v1/route_pb.ts";
import { ObjectKind } from "../../gen/krane/admin/v1/admin_pb.ts";
import { httpRoutes, services } from "../../kube/resources.ts";
import { components, labelKeys, ownSelector } from "../../model/labels.ts";
import { type ClusterCall, keep } from "../cluster-call.ts";
import type { Kind } from "../kind.ts";
import { type RouteReport, routeReports } from "./report.ts";
import type { ObservedRoute } from "./seen.ts";
import { parseApplyRoute, parseDeleteRoute, type RouteSpec } from "./spec.ts";
import { routeView } from "./view.ts";

/** The permissions that an agent needs for this kind. The rows of policies cover its policy. */
const routeCalls: readonly ClusterCall[] = [
  {
    part: "agent",
    kind: services,
    labelSelector: ownSelector(components.route),
    verbs: keep,
    why: "A route is a Service in the namespace of its deployments.",
  },
  {
    part: "gateway",
    kind: httpRoutes,
    labelSelector: ownSelector(components.route),
    verbs: keep,
    why: "A route with hostnames is an HTTPRoute in the namespace of its deployments.",
  },
];

const rpc = ClusterService.method;

export const routeKind: Kind<
  "route",
  typeof RouteStateSchema,
  typeof ReportRouteStatusRequestSchema,
  RouteSpec,
  ObservedRoute,
  RouteReport
> = {
  name: "route",
  plural: "routes",
  aliases: [],
  controller: "routes",
  isAddition: true,
  objectKind: ObjectKind.ROUTE,
  kubectlKind: "service",
  idLabel: labelKeys.routeId,
  makesPods: false,
  rpcs: {
    watch: rpc.watchRoutes,
    get: rpc.getDesiredRouteState,
    idField: "routeId",
    digestKind: "route",
    report: rpc.reportRouteStatus,
  },
  applySchema: ApplyRouteSchema,
  stateSchema: RouteStateSchema,
  idOf: ({ routeId }) => routeId,
  namespaceOf: ({ k8sNamespace }) => k8sNamespace,
  keyOf: ({ k8sNamespace, k8sName }) => `${k8sNamespace}/${k8sName}`,
  uniqueNameOf: ({ k8sNamespace, k8sName }) => `${k8sNamespace}/${k8sName}`,
  deletionOf: ({ k8sNamespace, k8sName }) => ({ k8sNamespace, k8sName }),
  reports: routeReports,
  parseApply: parseApplyRoute,
  parseDelete: parseDeleteRoute,
  longField: "backends",
  clusterCalls: routeCalls,
  view: routeView,
  loadDocument: async () => (await import("./document.ts")).routeDocument,
  async loadController() {
    const { Controller } = await import("../../engine/controller.ts");
    const { routeRecipe } = await import("./controller.ts");
    return (options, deps) => new Controller(routeKind, routeRecipe, options, deps);
  },
};
