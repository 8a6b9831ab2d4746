// What is seen of a deployment, for those who report it or follow it. Types alone: published types lead here, and must
// not lead on to those of Kubernetes' own objects.
import type { ReportDeploymentStatusRequest_Update } from "../../gen/ctrl/v1/deployment_pb.ts";

export interface ObservedDeployment {
  readonly update: ReportDeploymentStatusRequest_Update;
  /** Equal for equal reports, so that the same report is not sent twice. */
  readonly fingerprint: string;
  readonly counts: InstanceCounts;
}

export interface InstanceCounts {
  /** What the live ReplicaSet asks for. */
  readonly wanted: number;
  /** Instances in the report. */
  readonly total: number;
  readonly ready: number;
  readonly failed: number;
  /** Instances that an earlier template made. krane never kills a pod, so they live as long as they live. */
  readonly ofOlderTemplate: number;
  /** Why the first failing instance fails. */
  readonly failure?: string;
}

export interface SeenDeployment extends ObservedDeployment {
  readonly readinessId?: string;
  /** Where its running instances listen. */
  readonly sockets: readonly { readonly ip: string; readonly port: number }[];
}
