// The part of a route's status reports that the control plane keeps: where its Service leads.
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  type ApplyRoute,
  type ReportRouteStatusRequest,
  ReportRouteStatusRequestSchema,
  type RouteStateSchema,
} from "../../gen/ctrl/v1/route_pb.ts";
import { ObjectView_Phase as Phase } from "../../gen/krane/admin/v1/admin_pb.ts";
import type { KindReports, ObjectReport } from "../report.ts";

export interface RouteReport extends ObjectReport {
  /** Empty for none. */
  readonly deploymentId: string;
  readonly exists: boolean;
  readonly gateway: GatewayReport;
}

/** What the HTTPRoute of a route does; of an older agent, as if there were none. */
export type GatewayReport = Pick<
  ReportRouteStatusRequest,
  "hostnames" | "nextDeploymentId" | "nextPercent" | "gatewayProblem"
>;

/** Without an HTTPRoute. */
export const noGateway: GatewayReport = {
  hostnames: [],
  nextDeploymentId: "",
  nextPercent: 0,
  gatewayProblem: "",
};

export const routeReports: KindReports<
  typeof RouteStateSchema,
  typeof ReportRouteStatusRequestSchema,
  RouteReport
> = {
  sayGone: true,
  listInstances: false,
  read: (request, atMs) => ({
    name: `${request.k8sNamespace}/${request.k8sName}`,
    id: request.routeId,
    report: reportOf(request, request.exists, atMs),
  }),
  bodyOf: ({ deploymentId, gateway }) =>
    toBinary(
      ReportRouteStatusRequestSchema,
      create(ReportRouteStatusRequestSchema, { deploymentId, ...gateway }),
    ),
  fromStored: ({ body, exists, atMs }) =>
    reportOf(fromBinary(ReportRouteStatusRequestSchema, body), exists, atMs),
  outcomeOf,
  phaseOf,
  viewOf: ({ deploymentId, exists, gateway, atMs }) => ({
    route: { deploymentId, exists, ...gateway, reportedAtMs: BigInt(Math.trunc(atMs)) },
  }),
};

function reportOf(request: ReportRouteStatusRequest, exists: boolean, atMs: number): RouteReport {
  const { deploymentId, hostnames, nextDeploymentId, nextPercent, gatewayProblem } = request;
  return {
    deploymentId,
    exists,
    gateway: { hostnames, nextDeploymentId, nextPercent, gatewayProblem },
    atMs,
  };
}

function outcomeOf({ deploymentId, exists, gateway }: RouteReport): string {
  if (!exists) return "gone";
  const { nextDeploymentId, nextPercent } = gateway;
  const part = nextDeploymentId === "" ? "" : `, ${nextPercent}% of the requests to ${nextDeploymentId}`;
  return leadsTo(deploymentId) + part;
}

export function leadsTo(deploymentId: string): string {
  return deploymentId === "" ? "leads nowhere" : `leads to ${deploymentId}`;
}

function phaseOf({ deploymentId, hostnames }: ApplyRoute, report: RouteReport | undefined): Phase {
  const isThere = report?.exists === true && report.deploymentId === deploymentId;
  // An older agent says nothing of the Gateway, and makes no HTTPRoute either.
  const isServed =
    isThere &&
    hostnames.every((name) => report.gateway.hostnames.includes(name)) &&
    report.gateway.gatewayProblem === "";
  return isServed ? Phase.READY : Phase.PROGRESSING;
}
