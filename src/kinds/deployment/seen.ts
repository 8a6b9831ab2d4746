// The observed state of a deployment, for reports and for subscribers. This module holds types only: published types
// import it, and must not pull in the types of Kubernetes objects.
import type { ReportDeploymentStatusRequest_Update } from "../../gen/ctrl/v1/deployment_pb.ts";

export interface ObservedDeployment {
  readonly update: ReportDeploymentStatusRequest_Update;
  /** The same for equal reports, so that none is sent twice. */
  readonly fingerprint: string;
  readonly counts: InstanceCounts;
}

export interface InstanceCounts {
  /** The replicas in the spec of the live ReplicaSet. */
  readonly wanted: number;
  /** Instances in the report. */
  readonly total: number;
  readonly ready: number;
  readonly failed: number;
  /** Instances from an older template. krane does not replace them, so they run until they end. */
  readonly ofOlderTemplate: number;
  /** Why the first failing instance fails. */
  readonly failure?: string;
}

export interface SeenDeployment extends ObservedDeployment {
  readonly readinessId?: string;
  /** Where its running instances listen. */
  readonly sockets: readonly { readonly ip: string; readonly port: number }[];
}
