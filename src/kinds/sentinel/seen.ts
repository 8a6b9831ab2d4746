// The observed state of a sentinel, for reports and for subscribers. This module holds types only: published types
// import it, and must not pull in the types of Kubernetes objects.
import type { ReportSentinelStatusRequest } from "../../gen/ctrl/v1/sentinel_pb.ts";

export interface ObservedSentinel {
  /** Without the region, which the sender adds. */
  readonly update: ReportSentinelStatusRequest;
  /** The same for equal reports, so that none is sent twice. */
  readonly fingerprint: string;
  readonly counts: SentinelCounts;
}

export interface SentinelCounts {
  /** The replicas in the spec of the live apps/v1 Deployment. */
  readonly wanted: number;
  /** Existing pods, of any template. */
  readonly total: number;
  readonly ready: number;
  /** Pods of the current template. */
  readonly updated: number;
  /** Whether all wanted pods are available with the current template, and no pod of another template is left. */
  readonly converged: boolean;
  readonly failure?: string;
}
