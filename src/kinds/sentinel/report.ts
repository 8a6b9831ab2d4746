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
  /** The agent never reports the image, as those of the original. */
  readonly imageUnknown?: boolean;
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
    // Agents that report the image have always sent the id with it.
    report: {
      availableReplicas,
      health,
      runningImage,
      atMs,
      ...(sentinelId === "" && { imageUnknown: true }),
    },
  }),
  bodyOf({ availableReplicas, health, runningImage, imageUnknown = false }) {
    // Reports that earlier versions stored have no name, and were of agents that report the image.
    const k8sName = imageUnknown ? withoutImage : "";
    const fields = { availableReplicas, health, runningImage, k8sName };
    return toBinary(ReportSentinelStatusRequestSchema, create(ReportSentinelStatusRequestSchema, fields));
  },
  fromStored({ body, atMs }) {
    const stored = fromBinary(ReportSentinelStatusRequestSchema, body);
    const { availableReplicas, health, runningImage, k8sName } = stored;
    const kept = { availableReplicas, health, runningImage, atMs };
    return k8sName === withoutImage ? { ...kept, imageUnknown: true } : kept;
  },
  outcomeOf: ({ health, availableReplicas }) =>
    `${healthWords[health] ?? "unknown"}, ${availableReplicas} available`,
  phaseOf,
  viewOf: ({ availableReplicas, health, runningImage, imageUnknown = false, atMs }) => ({
    sentinel: {
      availableReplicas,
      health,
      runningImage,
      imageUnknown,
      reportedAtMs: BigInt(Math.trunc(atMs)),
    },
  }),
};

const withoutImage = "without image";

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
  const { health, availableReplicas, runningImage, imageUnknown } = report;
  // During a rollout the agent reports no image, although enough of the previous pods serve.
  const isReady =
    health === Health.HEALTHY && availableReplicas >= replicas && (imageUnknown || runningImage === image);
  return isReady ? Phase.READY : Phase.PROGRESSING;
}
