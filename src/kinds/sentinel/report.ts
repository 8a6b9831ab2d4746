// The part of a sentinel's status reports that the control plane keeps: how many pods are available, with which image.
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  type ApplySentinel,
  Health,
  ReportSentinelStatusRequestSchema,
  type SentinelStateSchema,
} from "../../gen/ctrl/v1/sentinel_pb.ts";
import { ObjectView_Phase as Phase } from "../../gen/krane/admin/v1/admin_pb.ts";
import type { KindReports, ObjectReport } from "../report.ts";

export interface SentinelReport extends ObjectReport {
  readonly availableReplicas: number;
  readonly health: Health;
  /** Empty during a rollout. */
  readonly runningImage: string;
}

export const sentinelReports: KindReports<
  typeof SentinelStateSchema,
  typeof ReportSentinelStatusRequestSchema,
  SentinelReport
> = {
  sayGone: false,
  listInstances: false,
  read: ({ k8sName, sentinelId, availableReplicas, health, runningImage }, atMs) => ({
    name: k8sName,
    id: sentinelId,
    report: { availableReplicas, health, runningImage, atMs },
  }),
  bodyOf({ availableReplicas, health, runningImage }) {
    const fields = { availableReplicas, health, runningImage };
    return toBinary(ReportSentinelStatusRequestSchema, create(ReportSentinelStatusRequestSchema, fields));
  },
  fromStored({ body, atMs }) {
    const { availableReplicas, health, runningImage } = fromBinary(ReportSentinelStatusRequestSchema, body);
    return { availableReplicas, health, runningImage, atMs };
  },
  outcomeOf: ({ health, availableReplicas }) =>
    `${healthWords[health] ?? "unknown"}, ${availableReplicas} available`,
  phaseOf,
  viewOf: ({ availableReplicas, health, runningImage, atMs }) => ({
    sentinel: { availableReplicas, health, runningImage, reportedAtMs: BigInt(Math.trunc(atMs)) },
  }),
};

const healthWords: Readonly<Record<Health, string>> = {
  [Health.UNSPECIFIED]: "unknown",
  [Health.HEALTHY]: "healthy",
  [Health.UNHEALTHY]: "unhealthy",
  [Health.PAUSED]: "paused",
};

function phaseOf({ replicas, image }: ApplySentinel, report: SentinelReport | undefined): Phase {
  if (replicas === 0) {
    return (report?.availableReplicas ?? 0) === 0 ? Phase.PAUSED : Phase.PROGRESSING;
  }
  if (report === undefined) return Phase.PROGRESSING;
  const { health, availableReplicas, runningImage } = report;
  // During a rollout the agent reports no image, although enough of the previous pods serve.
  const isReady = health === Health.HEALTHY && availableReplicas >= replicas && runningImage === image;
  return isReady ? Phase.READY : Phase.PROGRESSING;
}
