// What is seen of a sentinel, for those who report it or follow it. Types alone: published types lead here, and must
// not lead on to those of Kubernetes' own objects.
import type { ReportSentinelStatusRequest } from "../../gen/ctrl/v1/sentinel_pb.ts";

export interface ObservedSentinel {
  /** Without the region, which is whoever sends it to add. */
  readonly update: ReportSentinelStatusRequest;
  /** Equal for equal reports, so that the same report is not sent twice. */
  readonly fingerprint: string;
  readonly counts: SentinelCounts;
}

export interface SentinelCounts {
  /** What the live apps/v1 Deployment asks for. */
  readonly wanted: number;
  /** Pods that there are, of every template. */
  readonly total: number;
  readonly ready: number;
  /** Pods of the present template. */
  readonly updated: number;
  /** Whether all pods that there should be run the present template, and none another. */
  readonly converged: boolean;
  readonly failure?: string;
}
