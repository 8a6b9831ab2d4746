// The reports on deployments in a call to the control plane, which has one or several.
import type {
  ReportDeploymentStatusesRequest,
  ReportDeploymentStatusRequest,
} from "../../src/gen/ctrl/v1/deployment_pb.ts";

/** None in calls of other methods. */
export function reportsOfCall(method: string, message: unknown): readonly ReportDeploymentStatusRequest[] {
  if (method === "ReportDeploymentStatus") return [message as ReportDeploymentStatusRequest];
  if (method !== "ReportDeploymentStatuses") return [];
  const { entries } = message as ReportDeploymentStatusesRequest;
  return entries.flatMap(({ report }) => (report === undefined ? [] : [report]));
}
