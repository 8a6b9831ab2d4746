// Computes the status of an apps/v1 Deployment from its ReplicaSets. No I/O.
import type {
  Deployment,
  DeploymentCondition,
  DeploymentStatus,
  ReplicaSet,
} from "kubernetes-types/apps/v1.js";
import { valueAt } from "../json.ts";
import { formatTimestamp, parseTimestamp } from "../timestamps.ts";
import { availableOf, limitsOf, sizeOf, sum } from "./rollout.ts";

export function deploymentStatus(
  deployment: Deployment,
  newSet: ReplicaSet | undefined,
  old: readonly ReplicaSet[],
  nowMs: number,
): DeploymentStatus {
  const all = newSet === undefined ? old : [...old, newSet];
  const limits = limitsOf(deployment);
  const counts = {
    replicas: sum(all, ({ status }) => status?.replicas ?? 0),
    updatedReplicas: newSet?.status?.replicas ?? 0,
    readyReplicas: sum(all, ({ status }) => status?.readyReplicas ?? 0),
    availableReplicas: sum(all, availableOf),
  };
  const unavailableReplicas = Math.max(sum(all, sizeOf) - counts.availableReplicas, 0);
  const isAvailable = counts.availableReplicas >= limits.replicas - limits.maxUnavailable;
  const isComplete =
    counts.updatedReplicas === limits.replicas &&
    counts.replicas === limits.replicas &&
    counts.availableReplicas >= limits.replicas;
  const known = deployment.status?.conditions ?? [];
  const conditions = [
    merged(known, nowMs, {
      type: "Available",
      status: isAvailable ? "True" : "False",
      reason: isAvailable ? "MinimumReplicasAvailable" : "MinimumReplicasUnavailable",
      message: `Deployment ${isAvailable ? "has" : "does not have"} minimum availability.`,
    }),
    ...progress(deployment, newSet, counts, isComplete, nowMs),
  ];
  return {
    ...(deployment.metadata?.generation === undefined
      ? {}
      : { observedGeneration: deployment.metadata.generation }),
    ...withoutZeroes({ ...counts, unavailableReplicas }),
    ...terminating(all),
    conditions,
  };
}

/** Not in the types yet. Unlike the other counts it is written even if it is 0. */
function terminating(sets: readonly ReplicaSet[]): object {
  const countOf = ({ status }: ReplicaSet) => Number(valueAt(status, "terminatingReplicas") ?? 0);
  return { terminatingReplicas: sum(sets, countOf) };
}

function withoutZeroes<T extends Record<string, number>>(counts: T): Partial<T> {
  return Object.fromEntries(Object.entries(counts).filter(([, count]) => count !== 0)) as Partial<T>;
}

type News = Pick<DeploymentCondition, "type" | "status" | "reason" | "message">;

/** Times change only when their condition changes, because otherwise every pass would write. */
function merged(known: readonly DeploymentCondition[], nowMs: number, news: News): DeploymentCondition {
  const before = known.find(({ type }) => type === news.type);
  const now = formatTimestamp(nowMs);
  const isSame =
    before?.status === news.status && before.reason === news.reason && before.message === news.message;
  return {
    type: news.type,
    status: news.status,
    lastUpdateTime: isSame ? (before?.lastUpdateTime ?? now) : now,
    lastTransitionTime: before?.status === news.status ? (before.lastTransitionTime ?? now) : now,
    ...(news.reason === undefined ? {} : { reason: news.reason }),
    ...(news.message === undefined ? {} : { message: news.message }),
  };
}

function progress(
  deployment: Deployment,
  newSet: ReplicaSet | undefined,
  counts: {
    readonly updatedReplicas: number;
    readonly readyReplicas: number;
    readonly availableReplicas: number;
  },
  isComplete: boolean,
  nowMs: number,
): DeploymentCondition[] {
  const known = deployment.status?.conditions ?? [];
  const before = known.find(({ type }) => type === "Progressing");
  if (deployment.spec?.paused === true) {
    const news = {
      type: "Progressing",
      status: "Unknown",
      reason: "DeploymentPaused",
      message: "Deployment is paused",
    };
    return [merged(known, nowMs, news)];
  }
  if (newSet === undefined) return before === undefined ? [] : [before];
  const name = newSet.metadata?.name;
  if (isComplete) {
    const message = `ReplicaSet "${name}" has successfully progressed.`;
    return [
      merged(known, nowMs, {
        type: "Progressing",
        status: "True",
        reason: "NewReplicaSetAvailable",
        message,
      }),
    ];
  }
  const last = deployment.status ?? {};
  const isMoving =
    counts.updatedReplicas !== (last.updatedReplicas ?? 0) ||
    counts.readyReplicas > (last.readyReplicas ?? 0) ||
    counts.availableReplicas > (last.availableReplicas ?? 0) ||
    before === undefined ||
    before.reason === "NewReplicaSetAvailable" ||
    before.reason === "DeploymentPaused";
  if (!isMoving && isOverdue(deployment, before, nowMs)) {
    const message = `ReplicaSet "${name}" has timed out progressing.`;
    return [
      merged(known, nowMs, {
        type: "Progressing",
        status: "False",
        reason: "ProgressDeadlineExceeded",
        message,
      }),
    ];
  }
  if (!isMoving && before !== undefined) return [before];
  const message = `ReplicaSet "${name}" is progressing.`;
  const condition = merged(known, nowMs, {
    type: "Progressing",
    status: "True",
    reason: "ReplicaSetUpdated",
    message,
  });
  // Progress restarts the deadline.
  return [{ ...condition, lastUpdateTime: formatTimestamp(nowMs) }];
}

/** When the deployment exceeds its progress deadline; undefined if it waits for nothing. */
export function progressDeadlineMs(deployment: Deployment): number | undefined {
  const condition = deployment.status?.conditions?.find(({ type }) => type === "Progressing");
  if (condition?.reason !== "ReplicaSetUpdated") return undefined;
  const since = parseTimestamp(condition.lastUpdateTime ?? "") ?? 0;
  return since + (deployment.spec?.progressDeadlineSeconds ?? 600) * 1000;
}

function isOverdue(deployment: Deployment, before: DeploymentCondition | undefined, nowMs: number): boolean {
  if (before?.reason === "ProgressDeadlineExceeded") return true;
  const deadline = progressDeadlineMs(deployment);
  return deadline !== undefined && nowMs >= deadline;
}
