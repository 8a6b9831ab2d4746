// The part of a route's status reports that the control plane keeps: where its Service leads.
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  type ApplyRoute,
  ReportRouteStatusRequestSchema,
  type RouteStateSchema,
} from "../../gen/ctrl/v1/route_pb.ts";
import { ObjectView_Phase as Phase } from "../../gen/krane/admin/v1/admin_pb.ts";
import type { KindReports, ObjectReport } from "../report.ts";

export interface RouteReport extends ObjectReport {
  /** Empty for none. */
  readonly deploymentId: string;
  readonly exists: boolean;
}

export const routeReports: KindReports<
  typeof RouteStateSchema,
  typeof ReportRouteStatusRequestSchema,
  RouteReport
> = {
  sayGone: true,
  listInstances: false,
  read: ({ k8sNamespace, k8sName, routeId, deploymentId, exists }, atMs) => ({
    name: `${k8sNamespace}/${k8sName}`,
    id: routeId,
    report: { deploymentId, exists, atMs },
  }),
  bodyOf: ({ deploymentId }) =>
    toBinary(ReportRouteStatusRequestSchema, create(ReportRouteStatusRequestSchema, { deploymentId })),
  fromStored({ body, exists, atMs }) {
    const { deploymentId } = fromBinary(ReportRouteStatusRequestSchema, body);
    return { deploymentId, exists, atMs };
  },
  outcomeOf: ({ deploymentId, exists }) => (exists ? leadsTo(deploymentId) : "gone"),
  phaseOf,
  viewOf: ({ deploymentId, exists, atMs }) => ({
    route: { deploymentId, exists, reportedAtMs: BigInt(Math.trunc(atMs)) },
  }),
};

export function leadsTo(deploymentId: string): string {
  return deploymentId === "" ? "leads nowhere" : `leads to ${deploymentId}`;
}

function phaseOf({ deploymentId }: ApplyRoute, report: RouteReport | undefined): Phase {
  const isThere = report?.exists === true && report.deploymentId === deploymentId;
  return isThere ? Phase.READY : Phase.PROGRESSING;
}
