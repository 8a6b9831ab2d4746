// The part of a deployment's status reports that the control plane keeps: whether the deployment exists, and its pods.
import {
  type ApplyDeployment,
  type DeploymentStateSchema,
  type ReportDeploymentStatusRequestSchema,
  ReportDeploymentStatusRequest_Update_Instance_Status as Status,
} from "../../gen/ctrl/v1/deployment_pb.ts";
import { ObjectView_Phase as Phase } from "../../gen/krane/admin/v1/admin_pb.ts";
import type { Instance, KindReports, ObjectReport } from "../report.ts";

export interface DeploymentReport extends ObjectReport {
  readonly exists: boolean;
  readonly instances: readonly Instance[];
}

export const deploymentReports: KindReports<
  typeof DeploymentStateSchema,
  typeof ReportDeploymentStatusRequestSchema,
  DeploymentReport
> = {
  sayGone: true,
  listInstances: true,
  read({ change }, atMs) {
    if (change.case === undefined) return undefined;
    const instances = change.case === "update" ? change.value.instances : [];
    const report = { exists: change.case === "update", instances, atMs };
    return { name: change.value.k8sName, id: "", report };
  },
  bodyOf: () => new Uint8Array(),
  fromStored: ({ exists, instances, atMs }) => ({ exists, instances, atMs }),
  outcomeOf,
  phaseOf,
  viewOf: ({ exists, instances, atMs }) => ({
    deployment: { exists, instances: [...instances], reportedAtMs: BigInt(Math.trunc(atMs)) },
  }),
};

const statusWords: readonly (readonly [Status, string])[] = [
  [Status.RUNNING, "running"],
  [Status.PENDING, "pending"],
  [Status.FAILED, "failed"],
  [Status.UNSPECIFIED, "unknown"],
];

function outcomeOf({ exists, instances }: DeploymentReport): string {
  if (!exists) return "gone";
  const counts = statusWords
    .map(
      ([status, word]) => [instances.filter((instance) => instance.status === status).length, word] as const,
    )
    .filter(([count]) => count > 0);
  return counts.length === 0 ? "no instances" : counts.map(([count, word]) => `${count} ${word}`).join(", ");
}

function phaseOf({ replicas }: ApplyDeployment, report: DeploymentReport | undefined): Phase {
  const instances = report?.instances ?? [];
  if (replicas === 0) return instances.length === 0 ? Phase.PAUSED : Phase.PROGRESSING;
  const running = instances.filter(({ status }) => status === Status.RUNNING).length;
  // The agent does not replace pods: one from an older version serves, but does not match the current spec.
  const isCurrent = !instances.some(({ outdated }) => outdated);
  if (running === replicas && instances.length === replicas && isCurrent) return Phase.READY;
  const cannotRun = running < replicas && instances.some(({ status }) => status === Status.FAILED);
  return cannotRun ? Phase.FAILED : Phase.PROGRESSING;
}
